"""Where technicians are: devices report it, viewers see it live, or poll when they must.

    position   where somebody is, and who may be watched
    writer     positions of many requests, stored in few statements
    reading    the last position of each technician
    hub        the viewers of one process, who are told what is new
    adaptive   a client that follows live, and polls while it cannot

Every stored batch is told by NOTIFY, so viewers may be at another process than devices.
"""

"""The dead-letter desk: dead jobs of all queues, to look at, to retry and to deal with.

Dead jobs stay where they are; the desk only finds them.
"""

"""The demo: a business day of CampoTech, with everything that may go wrong on one."""

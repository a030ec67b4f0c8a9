"""The command `faena`: workers, and everything an operator does to queues and jobs.

root        the group of all commands; turns every error into one line and an exit code
catalogue   the module and the help line of each command
argument    arguments and options that commands share
target      finds the app of MODULE:APP
session     connects an app for one command
output      tables for people, one JSON document for programs
log         formats of log lines
worker, serving, dev       processes that run jobs
document    the JSON document
progress    progress bars
enqueue, jobs, change      single jobs
queues, settings, workers, tasks, tenants, shares, shards, schedules    queues and what serves them
dlq, redrive, flow, groups, explain, checkup                           what went wrong, and why
events, health                                                         what happens
"""

from faena.cli.root import main

__all__ = ["main"]

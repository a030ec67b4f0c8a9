"""The command `faena`: workers, and everything an operator does to queues and jobs.

root        the commands' common roof, and the border where every error becomes one line
catalogue   where each command is
argument    what words and options may look like
target      MODULE:APP becomes an app
session     an app, connected for the length of one command
output      tables for people, one JSON document for programs
log         how log lines look
worker, serving, dev       processes that run jobs
document    what programs read
progress    how far long work is
enqueue, jobs, change      single jobs
queues, settings, workers, tasks, tenants, shares, shards, schedules    queues and what serves them
dlq, redrive, flow, groups, explain, checkup                           what went wrong, and why
events, health                                                         what happens
"""

from faena.cli.root import main

__all__ = ["main"]

"""The command `faena`: workers, and everything an operator does to queues and jobs.

root        the commands' common roof, and the border where every error becomes one line
argument    what words and options may look like
target      MODULE:APP becomes an app
session     an app, connected for the length of one command
output      tables for people, one JSON document for programs
log         how log lines look
worker, serving, dev       processes that run jobs
queues, jobs, checkup      operators' commands
"""

from faena.cli.root import main

__all__ = ["main"]

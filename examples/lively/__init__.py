"""A day at a field-service company, in half a minute: what `./dev demo` shows.

shop      the queues and their handlers
story     what happens during the day: work arrives, an upstream fails, a worker is killed
crew      worker processes, to be started, stopped and killed
worker    what one of those processes runs
ledger    a file outside the broker into which every start is written
verdict   plan, ledger and broker compared: was anything lost or done twice?
screen    the live table, or plain lines where there is no terminal

python -m examples.lively --once
"""

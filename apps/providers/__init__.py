"""Clients of outside services.

Each folder is one service: its settings (addresses and credentials, from the environment), a client
that speaks its protocol and knows nothing of Faena, its errors, and its upstream: limits, breaker,
prices and budgets. The same code talks to the real service and to its stand-in in `apps.sandbox`.

What they share: `http` (one request and what can be known if it fails), `outcome` (what failures
mean), `reading` (of answers), `environment` (variables and safe addresses).
"""

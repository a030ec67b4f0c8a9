"""One adapter per system that enqueues in a transaction: `python -m bench.transactional NAME …`.

Nothing here may import a peer: the harness and every adapter share this package.
"""

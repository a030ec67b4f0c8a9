"""One adapter per system, run by that system's own interpreter: `python -m bench.peers NAME …`.

Nothing here may import a peer: the harness and every adapter share this package.
"""

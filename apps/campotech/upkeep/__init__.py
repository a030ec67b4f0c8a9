"""Work behind the scenes: analytics, cleaning up, reconciliation, work at fixed times."""

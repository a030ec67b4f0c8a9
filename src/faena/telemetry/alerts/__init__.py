"""Alerts: rules judged on a snapshot, states on the broker, notices that are jobs."""

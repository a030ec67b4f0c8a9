"""Rules and dashboards, written out of the declaration of metrics: `./dev deploy`."""

"""Events and health of a running system."""

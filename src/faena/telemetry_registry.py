"""What an app tells about itself: how all of its queues do."""

from __future__ import annotations

from faena.upstream_registry import UpstreamRegistry


class TelemetryRegistry(UpstreamRegistry):
    """The part of an app that reads and shows what happens in it."""

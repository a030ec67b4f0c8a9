"""An organisation with an owner, and all services."""

from tests.apps.campotech.messaging.conftest import office, other

__all__ = ["office", "other"]

"""An organisation with an owner, and all services."""

from tests.apps.campotech.messaging.conftest import device_key, office, other, sandbox

__all__ = ["device_key", "office", "other", "sandbox"]

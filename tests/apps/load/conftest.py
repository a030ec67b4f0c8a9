"""The database of CampoTech's own tests."""

from tests.apps.campotech.conftest import cluster, database

__all__ = ["cluster", "database"]

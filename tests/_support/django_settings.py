"""Django's settings, which a process has once, whichever tests of it run there."""

from __future__ import annotations

import django
from django.conf import settings


def configure() -> None:
    """What all tests that use Django need."""
    if settings.configured:
        return
    settings.configure(
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}},
        ROOT_URLCONF="tests.web.test_mounting",
        SECRET_KEY="test",
    )
    django.setup()

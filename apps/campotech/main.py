"""The installation that the environment describes, for commands that take MODULE:APP.

faena worker apps.campotech.main:app --pool high
"""

from __future__ import annotations

import os
from typing import Final

from apps.campotech.settings import Settings
from apps.campotech.system import System

system: Final = System(Settings.from_env(os.environ))
app: Final = system.app

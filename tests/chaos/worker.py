"""What worker processes load: `faena worker tests.chaos.worker:app`."""

from __future__ import annotations

import os

from tests._support.ledger import Ledger
from tests.chaos.shop import open_shop

app = open_shop(os.environ["FAENA_URL"], Ledger(os.environ["CHAOS_LEDGER"], is_synced=True))

"""One worker process of the demo: serves every queue until its standard input closes.

The pipe closes when the demo says so and also when the demo dies, so no worker is ever left over.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from examples.lively.ledger import Ledger
from examples.lively.shop import open_shop
from faena import WorkerOptions
from faena.embedded import Embedded


async def work(url: str, ledger: Path, name: str) -> None:
    """Serve until told to stop, then finish what is under way."""
    shop = open_shop(url, [Ledger(ledger)])
    async with shop.app:
        worker = await shop.app.worker(options=WorkerOptions(name=name, grace="3s"))
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.remove_reader(sys.stdin)
            worker.stop()

        loop.add_reader(sys.stdin, stop)
        await worker.run()


def main() -> None:
    directory, name = Path(sys.argv[1]), sys.argv[2]
    with Embedded.join(directory / "data") as server:
        asyncio.run(work(server.url, directory / "ledger", name))


if __name__ == "__main__":
    main()

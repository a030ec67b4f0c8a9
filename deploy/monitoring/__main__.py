"""Writes the rules and the dashboards: `./dev deploy`."""

from __future__ import annotations

import sys

from deploy.monitoring.page import PAGES, ROOT


def main() -> None:
    """Write every file."""
    for name, write in PAGES.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(), "utf-8")
        sys.stdout.write(f"deploy/{name}\n")


if __name__ == "__main__":
    main()

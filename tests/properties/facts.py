"""What the first line of a spec says of its job."""

from __future__ import annotations


def facts_of(spec: bytes) -> dict[str, str]:
    """The facts by name, without the priority."""
    words = spec.partition(b"\n")[0].decode().split()[1:]
    return dict(word.split("=", 1) for word in words)  # type: ignore[misc]

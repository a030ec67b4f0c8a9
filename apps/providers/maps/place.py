"""Places in questions: points or addresses.

Google separates places with `|` and gives prefixes such as `via:` a meaning, so an address that has
them would ask another question: it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from apps.providers.maps.errors import Permanent

_MOST_CHARACTERS: Final = 300
_PREFIX: Final = re.compile(
    r"\s*(via|optimize|enc|place_id|side_of_road|heading=\d+):", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Point:
    """In degrees."""

    lat: float
    lng: float

    def __post_init__(self) -> None:
        """On earth; NaN is not."""
        if not (-90 <= self.lat <= 90 and -180 <= self.lng <= 180):
            raise ValueError("a point must have a latitude up to 90 and a longitude up to 180")


Place: TypeAlias = str | Point


def written(place: Place) -> str:
    """A place as it stands in a question."""
    if isinstance(place, Point):
        return f"{place.lat:.6f},{place.lng:.6f}"
    is_clean = place.isprintable() and "|" not in place and not _PREFIX.match(place)
    if not place.strip() or len(place) > _MOST_CHARACTERS or not is_clean:
        raise Permanent(
            f"an address must have 1 to {_MOST_CHARACTERS} printable characters, no | and no prefix"
        )
    return place


def listed(places: Sequence[Place]) -> str:
    """Several places."""
    return "|".join(map(written, places))

"""What Google's maps answer, as far as it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from apps.providers.maps.place import Point

_Whole = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_Lat = Annotated[float, msgspec.Meta(ge=-90, le=90)]
_Lng = Annotated[float, msgspec.Meta(ge=-180, le=180)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far it is."""

    meters: int
    seconds: int
    """With the traffic at the time of departure, if one was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """From one stop to the next."""

    start: Point
    end: Point
    distance: Distance


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A way by car."""

    legs: tuple[Leg, ...]
    order: tuple[int, ...]
    """In which order the waypoints are visited, by their places in the question."""
    polyline: str
    items: Mapping[str, int]
    """What the question has used, for the price list: `upstream.spend(route.items)`."""

    @property
    def distance(self) -> Distance:
        """Of all legs."""
        meters = sum(one.distance.meters for one in self.legs)
        return Distance(meters=meters, seconds=sum(one.distance.seconds for one in self.legs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """How far it is from each origin to each destination; None where there is no way."""

    rows: tuple[tuple[Distance | None, ...], ...]
    items: Mapping[str, int]


class _Value(msgspec.Struct):
    value: _Whole


class _Location(msgspec.Struct):
    lat: _Lat
    lng: _Lng


class _Leg(msgspec.Struct):
    distance: _Value
    duration: _Value
    start_location: _Location
    end_location: _Location
    duration_in_traffic: _Value | None = None


class _Polyline(msgspec.Struct):
    points: str


class _Route(msgspec.Struct):
    legs: Annotated[list[_Leg], msgspec.Meta(min_length=1)]
    overview_polyline: _Polyline
    waypoint_order: list[_Whole] = []


class Directions(msgspec.Struct):
    """The answer about a route."""

    status: str
    routes: list[_Route] = []

    def is_of(self, waypoints: int) -> bool:
        """Whether there is a way that visits each waypoint once."""
        if not self.routes:
            return False
        best = self.routes[0]
        is_each = sorted(best.waypoint_order) == [*range(waypoints)]
        return is_each and len(best.legs) == waypoints + 1

    def first(self, items: Mapping[str, int]) -> Route:
        """The way that Google thinks best."""
        best = self.routes[0]
        return Route(
            legs=tuple(_leg(one) for one in best.legs),
            order=tuple(best.waypoint_order),
            polyline=best.overview_polyline.points,
            items=items,
        )


class _Element(msgspec.Struct):
    status: str
    distance: _Value | None = None
    duration: _Value | None = None
    duration_in_traffic: _Value | None = None

    def read(self) -> Distance | None:
        if self.status != "OK" or self.distance is None or self.duration is None:
            return None
        lasting = self.duration_in_traffic or self.duration
        return Distance(meters=self.distance.value, seconds=lasting.value)


class _Row(msgspec.Struct):
    elements: list[_Element]


class Distances(msgspec.Struct):
    """The answer about a matrix."""

    status: str
    rows: list[_Row] = []

    def is_of(self, origins: int, destinations: int) -> bool:
        """Whether it has the size of the question."""
        return [len(one.elements) for one in self.rows] == [destinations] * origins

    def read(self, items: Mapping[str, int]) -> Matrix:
        """As it is used."""
        rows = tuple(tuple(one.read() for one in row.elements) for row in self.rows)
        return Matrix(rows=rows, items=items)


def _leg(leg: _Leg) -> Leg:
    lasting = leg.duration_in_traffic or leg.duration
    return Leg(
        start=Point(leg.start_location.lat, leg.start_location.lng),
        end=Point(leg.end_location.lat, leg.end_location.lng),
        distance=Distance(meters=leg.distance.value, seconds=lasting.value),
    )

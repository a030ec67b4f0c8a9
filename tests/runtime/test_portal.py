"""`app.sync`: Faena for programs without an event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from faena import Faena, Priority
from faena.errors import ConfigError, JobCancelled, PayloadError, ResultTimeout, StoreUnavailable
from faena.runtime import portal as portals
from tests._support.eventually import eventually
from tests._support.valkey import Server


@pytest.fixture
def app(valkey: Server, namespace: str) -> Iterator[Faena]:
    app = Faena("shop", valkey.url, namespace=namespace)
    yield app
    for queue in app.queues.values():
        app.sync.run(queue.obliterate(force=True))
    app.sync.close()


def portal_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "faena-portal"]


def test_every_operation_has_a_form_without_an_event_loop(app: Faena) -> None:
    queue = app.queue("mail")

    @queue.task
    async def shout(word: str) -> str:
        return word.upper()

    receipt = app.sync.enqueue(shout, "hola", tenant="org-1")
    (late,) = app.sync.enqueue_many(shout, [shout.draft("uno", delay="1h")])
    assert app.sync.state(late.handle) == "delayed"
    assert app.sync.cancel(late.handle) == "cancelled"
    app.sync.run(_work(app))
    assert app.sync.result(receipt.handle, timeout="60s") == "HOLA"
    with pytest.raises(JobCancelled):
        app.sync.result(late.handle)
    with pytest.raises(PayloadError, match="expected str, got int"):
        app.sync.enqueue(shout, 7)  # type: ignore[arg-type]


def test_what_operators_do_has_a_form_without_an_event_loop(app: Faena) -> None:
    queue = app.queue("mail")

    @queue.task
    async def shout(word: str) -> str:
        return word.upper()

    sync, handle = app.sync, app.sync.enqueue(shout, "hola", delay="1h").handle
    assert sync.counts(queue)["delayed"] == 1
    assert sync.explain(handle).state == "delayed"
    sync.change(handle, delay="2h", priority="high")
    view = sync.view(handle)
    assert view is not None
    assert view.priority == Priority.HIGH
    sync.promote(handle)
    assert sync.pause(queue)
    assert sync.resume(queue)
    sync.cancel(handle)
    sync.rerun(handle)
    assert sync.state(handle) == "ready"
    sync.remove(handle)
    assert sync.view(handle) is None


async def _work(app: Faena) -> None:
    """Serve until the one job is done."""
    worker = await app.worker()
    serving = asyncio.create_task(worker.run())
    counts = app.queues["mail"].counts
    await eventually(lambda: _is_done(counts))
    worker.stop()
    await serving


async def _is_done(counts: Callable[[], Awaitable[dict[str, int]]]) -> bool:
    return (await counts())["completed"] == 1


def test_many_threads_share_one_portal(app: Faena) -> None:
    @app.queue("mail").task
    async def note(number: int) -> None: ...

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        receipts = list(pool.map(lambda number: app.sync.enqueue(note, number), range(200)))
    assert len({receipt.id for receipt in receipts}) == 200
    assert app.sync.run(app.queues["mail"].counts())["ready"] == 200
    assert len(portal_threads()) == 1


async def test_inside_an_event_loop_the_portal_refuses_instead_of_blocking_it(app: Faena) -> None:
    @app.queue("mail").task
    async def note() -> None: ...

    with pytest.raises(ConfigError, match="must be used outside an event loop"):
        app.sync.enqueue(note)
    coroutine = note()
    with pytest.raises(ConfigError, match="must be used outside an event loop"):
        app.sync.run(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_what_is_no_coroutine_is_refused_at_once(app: Faena) -> None:
    counts: Any = app.queue("mail").counts
    with pytest.raises(ConfigError, match=r"given a coroutine.*: write QueueReader.counts\(\)"):
        app.sync.run(counts)
    with pytest.raises(ConfigError, match=r"such as queue.counts\(\), got NoneType$"):
        app.sync.run(cast("Any", None))
    assert app.sync.run(counts())["ready"] == 0


async def test_a_handler_in_a_thread_may_use_the_portal(app: Faena) -> None:
    queue = app.queue("mail")

    @queue.task
    def parent(number: int) -> int:
        return app.sync.result(app.sync.enqueue(child, number).handle, timeout="60s") + 1

    @queue.task
    async def child(number: int) -> int:
        return 10 * number

    async with app:
        receipt = await parent.enqueue(4)
        worker = await app.worker()
        serving = asyncio.create_task(worker.run())
        assert await receipt.handle.result(timeout="60s") == 41
        worker.stop()
        await serving


def test_a_closed_portal_opens_again_at_the_next_call(app: Faena) -> None:
    @app.queue("mail").task
    async def note() -> None: ...

    app.sync.enqueue(note)
    app.sync.close()
    assert portal_threads() == []
    app.sync.close()
    app.sync.enqueue(note)
    assert app.sync.run(app.queues["mail"].counts())["ready"] == 2


def test_closing_tells_those_who_still_wait(app: Faena) -> None:
    @app.queue("mail").task
    async def note() -> None: ...

    receipt = app.sync.enqueue(note)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(app.sync.result, receipt.handle)
        app.sync.run(_until_awaited(app, receipt.id))
        app.sync.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            waiting.result(60)


async def _until_awaited(app: Faena, job_id: str) -> None:
    inspector = (await app.runtime()).inspector
    await eventually(lambda: ("mail", job_id) in inspector._waiting)


def test_a_wait_that_times_out_leaves_the_portal_usable(app: Faena) -> None:
    @app.queue("mail").task
    async def note() -> None: ...

    receipt = app.sync.enqueue(note)
    with pytest.raises(ResultTimeout):
        app.sync.result(receipt.handle, timeout="50ms")
    assert app.sync.state(receipt.handle) == "ready"


PROGRAM = """
    import os, sys
    from faena import Faena, Priority

    app = Faena("program", os.environ.get("URL"), directory=os.environ["HOME_DIR"],
                namespace=os.environ["NAMESPACE"])
    mail = app.queue("mail")

    @mail.task
    async def note(number: int) -> None: ...
"""


@pytest.fixture
def program(valkey: Server, namespace: str, tmp_path: Path) -> Iterator[Program]:
    yield Program(valkey.url, namespace, tmp_path)
    with valkey.client() as client:
        for name in client.scan_iter(f"{namespace}:*"):
            client.delete(name)


class Program:
    """A script of a user's, run as a process of its own."""

    def __init__(self, url: str, namespace: str, directory: Path) -> None:
        self.environ = {
            **os.environ,
            "URL": url,
            "NAMESPACE": namespace,
            "HOME_DIR": str(directory / "data"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }

    def start(self, body: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(body)],
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, body: str) -> str:
        """What it printed, when it ended well and said nothing but where its broker is."""
        with self.start(body) as process:
            printed, complaints = self.ending(process)
        said = "" if "URL" in self.environ else f"{self.environ['HOME_DIR']}; for production set"
        assert (process.returncode, said in complaints) == (0, True)
        assert complaints.count("\n") == bool(said), complaints
        return printed

    @staticmethod
    def ending(process: subprocess.Popen[str]) -> tuple[str, str]:
        """What it says until it ends; one that does not end is killed, with its children."""
        try:
            return process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def test_a_program_that_just_ends_closes_the_portal_by_itself(program: Program) -> None:
    printed = program.run("""
        app.sync.enqueue(note, 1)
        print(app.sync.run(mail.counts())["ready"])
    """)
    assert printed == "1\n"


def test_a_program_with_an_embedded_server_leaves_none_behind(program: Program) -> None:
    del program.environ["URL"]
    for ready in (1, 2):  # the data is kept from one run to the next
        printed = program.run("""
            app.sync.enqueue(note, 1)
            print(app.sync.run(mail.counts())["ready"])
            print((app.sync.run(app.runtime())).engine.wire.address.nodes[0].path)
        """)
        count, socket = printed.split()
        assert int(count) == ready
        assert not Path(socket).exists()


@pytest.mark.parametrize("broker", ["server", "embedded"])
def test_forked_children_use_the_portal_beside_their_parent(program: Program, broker: str) -> None:
    if broker == "embedded":
        del program.environ["URL"]
    printed = program.run("""
        app.sync.enqueue(note, 0)
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                for _ in range(5):
                    app.sync.enqueue(note, number)
                sys.exit(0)            # as gunicorn's workers end: handlers of atexit run
            children.append(child)
            app.sync.enqueue(note, number)
        codes = [os.waitpid(child, 0)[1] for child in children]
        app.sync.enqueue(note, 9)
        print(codes, app.sync.run(mail.counts())["ready"])
    """)
    assert printed == "[0, 0, 0] 20\n"


def test_a_fork_while_other_threads_are_inside_the_portal_does_not_lock_the_child(
    program: Program,
) -> None:
    printed = program.run("""
        import threading
        stop = threading.Event()
        app.sync.enqueue(note, 0)      # a fork in the middle of an import is Python's own affair

        def hammer():
            while not stop.is_set():
                app.sync.enqueue(note, 1)

        threads = [threading.Thread(target=hammer) for _ in range(3)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                app.sync.enqueue(note, 2)
                os._exit(0)
            codes.append(os.waitpid(child, 0)[1])
        stop.set()
        for thread in threads:
            thread.join()
        print(codes == [0] * 20)
    """)
    assert printed == "True\n"


def test_ctrl_c_during_a_wait_ends_the_wait_and_the_program(program: Program) -> None:
    process = program.start("""
        handle = app.sync.enqueue(note, 1).handle
        try:
            print("waiting", flush=True)
            app.sync.result(handle)
        except KeyboardInterrupt:
            print("interrupted", app.sync.state(handle))
    """)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        printed, complaints = program.ending(process)
    assert (process.returncode, printed, complaints) == (0, "interrupted ready\n", "")


def test_ctrl_c_at_any_moment_neither_hangs_nor_leaves_anything_behind(program: Program) -> None:
    # The timer's signal: SIGINT may be inherited as ignored, and is as sudden. It comes again after
    # a while: Python loses an interrupt that falls into the callback of a weak reference, which the
    # garbage collector runs wherever it is. That is one of some 40,000, and no part of the program.
    printed = program.run("""
        import asyncio, itertools, signal

        signal.signal(signal.SIGALRM, signal.default_int_handler)
        lost = []
        sys.unraisablehook = lambda each: lost.append(each.object)
        handle = app.sync.enqueue(note, 0).handle
        calls = itertools.cycle((
            lambda: app.sync.result(handle),
            lambda: app.sync.enqueue(note, 1),
            lambda: app.sync.enqueue_many(note, [1, 2]),
            lambda: app.sync.state(handle),
        ))
        ended = 0
        for number in range(600):
            if number % 100 == 0:
                app.sync.close()
            try:
                signal.setitimer(signal.ITIMER_REAL, (1 + 7 * number % 1000) / 1e6, 15)
                next(calls)()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                ended += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
        lost = [each for each in lost if "Weak" not in repr(each)]

        async def left():
            async with asyncio.timeout(60):
                while tasks := {task for task in asyncio.all_tasks() - {asyncio.current_task()}
                                if "faena/task.py" in repr(task)}:
                    await asyncio.sleep(0)
            return tasks

        print(ended > 150, app.sync.run(left()), app.sync.state(handle), lost)
    """)
    assert printed == "True set() ready []\n"


def test_a_call_that_exits_does_not_end_the_portal_for_others(program: Program) -> None:
    printed = program.run("""
        async def leave():
            sys.exit(3)

        try:
            app.sync.run(leave())
        except SystemExit as end:
            print(end.code)
        app.sync.enqueue(note, 1)
        print(app.sync.run(mail.counts())["ready"])
    """)
    assert printed == "3\n1\n"


def test_a_portal_that_cannot_start_tells_its_caller(program: Program) -> None:
    printed = program.run("""
        import asyncio

        makes, asyncio.new_event_loop = asyncio.new_event_loop, lambda: 1 / 0
        try:
            app.sync.enqueue(note, 1)
        except ZeroDivisionError as error:
            print(error)
        asyncio.new_event_loop = makes
        app.sync.enqueue(note, 1)
        print(app.sync.run(mail.counts())["ready"])
    """)
    assert printed == "division by zero\n1\n"


def test_a_program_that_ends_while_the_broker_is_gone_does_not_hang(program: Program) -> None:
    with Server() as server:
        program.environ["URL"] = server.url
        process = program.start("""
            app.sync.enqueue(note, 1)
            print("sent", flush=True)
            sys.stdin.readline()
        """)
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "sent\n"
            server.kill()
            printed, complaints = program.ending(process)
    assert (process.returncode, printed, complaints) == (0, "", "")


def test_the_coroutine_of_an_interrupted_wait_is_cancelled(
    app: Faena, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted(_call: object) -> None:
        assert began.wait(60)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(portals._Call, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            app.sync.run(work())
    assert ended.wait(60)


async def test_a_call_that_was_given_up_before_it_began_never_does() -> None:
    begun: list[int] = []

    async def work() -> None:
        begun.append(1)

    for is_given_up in (False, True):
        call = portals._Call(work)
        if is_given_up:
            call.give_up()
        call.begin(asyncio.get_running_loop())
        await asyncio.sleep(0)
    assert begun == [1]


def test_a_forked_child_begins_no_call_of_its_parent(app: Faena) -> None:
    ran: list[str] = []

    async def work(whose: str) -> None:
        ran.append(whose)

    app.sync._calls.append(portals._Call(lambda: work("parent")))
    app.sync._forked()
    app.sync.run(work("child"))
    assert ran == ["child"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda sync: sync.enqueue("send", 1), "task must be a Task, got 'send'"),
        (lambda sync: sync.enqueue_many("send", [1]), "task must be a Task, got 'send'"),
        (lambda sync: sync.result("j1"), "handle must be the handle of a job, got 'j1'"),
        (lambda sync: sync.state("j1"), "handle must be the handle of a job, got 'j1'"),
        (lambda sync: sync.counts("mail"), "queue must be a Queue, got 'mail'; use app.queues"),
    ],
)
def test_a_name_in_the_place_of_what_it_names_is_refused(
    app: Faena, call: Callable[[Any], object], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        call(app.sync)

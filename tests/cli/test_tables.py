"""Tables on a terminal: no name and no id is ever cut or folded."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from faena.cli import output
from faena.cli.output import failures, table
from faena.outcomes import ErrorRecord

HEADS = ("queue", "id", "task", "died", "error")
ROW = ("channel.sync", "0Q7aU6pkdZe149AWBu5Y", "push_rate", "2026-11-16 17:11:02 UTC", "x" * 90)


def drawn(width: int, monkeypatch: pytest.MonkeyPatch, **options: object) -> list[str]:
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    file = io.StringIO()
    console = Console(width=width, file=file, soft_wrap=True)
    console.print(table(HEADS, [ROW], **options))  # pyright: ignore[reportArgumentType] - as given
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_narrow_terminal_goes_without_what_is_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    spare = ("task", "died")
    head, _, row, told = drawn(80, monkeypatch, spare=spare, text="error")
    assert head.split() == ["queue", "id", "error"]
    assert row.split()[:2] == list(ROW[:2])
    assert row.endswith("…")
    assert len(row) == 80
    assert told == "no room for: task, died"
    head, _, row, told = drawn(95, monkeypatch, spare=spare, text="error")
    assert head.split() == ["queue", "id", "died", "error"]
    assert told == "no room for: task"


def test_a_wide_terminal_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    head, _, row = drawn(400, monkeypatch, spare=("task",), text="error")
    assert head.split() == list(HEADS)
    assert row.endswith(ROW[-1])


def test_what_cannot_be_spared_goes_over_the_edge_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, _, row = drawn(30, monkeypatch)
    assert row.split() == " ".join(ROW).split()


def test_an_error_without_an_attempt_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    errors = [
        ErrorRecord("ManualNeeded", "by hand", "MANUAL"),
        ErrorRecord("WorkerLost", "it died", "WORKER_LOST"),
        ErrorRecord("Boom", "it broke", attempt=2),
    ]
    failures(Console(), errors)
    heads = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if ":" in line]
    assert heads == ["no attempt", "lost", "attempt 2"]

"""An error of a program's own may say itself how long to wait."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from faena.resilience.sorting import Sorted, sort_error


class Busy(Exception):
    """A client's own error."""

    def __init__(self, retry_after: object = None, header: str | None = None) -> None:
        super().__init__()
        self.retry_after = retry_after
        if header is not None:
            self.response = SimpleNamespace(status_code=429, headers={"retry-after": header})


@pytest.mark.parametrize(
    ("error", "said"),
    [(Busy(7), 7), (Busy(7, "9"), "9"), (Busy(None, "9"), "9"), (Busy(), None)],
)
def test_the_header_counts_first_and_then_what_the_error_says(error: Busy, said: object) -> None:
    assert sort_error(error, {Busy: "rate_limited"}) == Sorted("rate_limited", said)

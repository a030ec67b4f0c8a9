"""What the machines of one queue have in common."""

from __future__ import annotations

import itertools
from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests._support.valkey import Server
from tests.properties.queue_driver import QueueDriver

D = TypeVar("D", bound=QueueDriver)


class QueueMachine(RuleBasedStateMachine, Generic[D]):
    """A driver, and callers that ask again."""

    server: Server
    numbers = itertools.count()
    driver: D

    @precondition(lambda self: self.driver.unanswered)
    @rule(data=st.data())
    def ask_again(self, data: st.DataObject) -> None:
        """The reply was lost; meanwhile others may have done anything."""
        unanswered = self.driver.unanswered
        caller = data.draw(st.sampled_from(sorted(unanswered)))
        self.driver.call(caller, unanswered[caller], "none")

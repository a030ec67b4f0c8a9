"""How the level of one alert changes, in the plainest words: bounds 50 and 100, eased below 40 and
80."""

from __future__ import annotations

BOUNDS = (0, 50, 100)
EASED = (0, 40, 80)


class AlertModel:
    """An alert whose values are kept, and judged by looking back."""

    def __init__(self, sustained_us: int, clear_after_us: int) -> None:
        self._sustained_us, self._clear_after_us = sustained_us, clear_after_us
        self._seen: list[tuple[int, int]] = []
        self._between_since: int | None = None
        self.level = 0

    def judge(self, value: int, now: int) -> int:
        """The level after one more value."""
        self._seen.append((now, value))
        risen = max(level for level in (0, 1, 2) if self._has_lasted(level, now))
        beyond = max(level for level in (0, 1, 2) if value >= BOUNDS[level])
        if risen > self.level:
            self.level, self._between_since = risen, None
        elif beyond >= self.level:
            self._between_since = None
        else:
            self._fall(value, beyond, now)
        return self.level

    def _has_lasted(self, level: int, now: int) -> bool:
        """Whether every value since some instant so long ago has reached the bound."""
        since = None
        for at, value in reversed(self._seen):
            if value < BOUNDS[level]:
                break
            since = at
        return level == 0 or (since is not None and now - since >= self._sustained_us)

    def _fall(self, value: int, beyond: int, now: int) -> None:
        held = max(level for level in range(self.level + 1) if value >= EASED[level])
        if held < self.level:
            self.level, self._between_since = max(held, beyond), None
            return
        self._between_since = now if self._between_since is None else self._between_since
        if now - self._between_since >= self._clear_after_us:
            self.level, self._between_since = beyond, None

    @staticmethod
    def kinds(told: int, level: int) -> set[str]:
        """What a change of the level is called."""
        if level == told:
            return set()
        if level == 0:
            return {"resolved"}
        return {"firing"} if told == 0 else {"escalated"} if level > told else {"eased"}

"""The scenarios, and the stage on which they play one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from apps.load import degradation, notifications, partitions, stress
from apps.load.figure import Findings
from apps.load.scene import Scene, Screen, Sizes
from apps.stage.stage import Wanted, open_stage

Scenario = Callable[[Scene], Awaitable[Findings]]
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "notifications": notifications.play,
    "degradation": degradation.play,
    "stress": stress.play,
    "partitions": partitions.play,
}
"""In the order in which they play; the last one fills the tables."""


async def play_all(
    scenarios: Mapping[str, Scenario],
    sizes: Sizes,
    directory: Path,
    screen: Screen,
    environ: Mapping[str, str] | None = None,
) -> list[Findings]:
    """What each has found; `environ` are more settings of CampoTech."""
    wanted = Wanted(
        organizations=sizes.organizations,
        speed=sizes.speed,
        seed=sizes.seed,
        environ={"OPENAI_DAILY_BUDGET": f"{degradation.BUDGET_USD} USD", **(environ or {})},
    )
    async with open_stage(wanted, directory, screen.say) as stage:
        scene = Scene(stage=stage, sizes=sizes, screen=screen, directory=directory)
        return [await play(scene) for play in scenarios.values()]

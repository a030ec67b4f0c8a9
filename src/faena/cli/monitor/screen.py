"""The monitor on the terminal: one table at a time, read again every few seconds.

A reading that fails leaves the last rows there and says that they are old. What is done is asked
for first; it is carried out once, and what came of it is said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Button, DataTable, Input, Label, Static

from faena.app import Faena
from faena.cli.monitor.listing import Deed, Listing, Reading, Row
from faena.cli.monitor.surroundings import Alerts, Schedules, Tenants, Upstreams, Workers
from faena.cli.monitor.work import Dead, Jobs, Queues
from faena.cli.output import plain
from faena.engine.wire.patience import within
from faena.errors import FaenaError

LISTS: Final = (Queues, Dead, Tenants, Workers, Schedules, Upstreams, Alerts)
"""By their keys, 1 to 7."""
_READ_S: Final = 5.0
_LOOK: Final = "look"


class Monitor(App[None]):
    """The program."""

    CSS = """
    #lists { height: 1; background: $panel; }
    #said { height: 1; padding: 0 1; text-style: bold; }
    #rows { height: 1fr; }
    #find { display: none; height: 3; }
    #find.shown { display: block; }
    #deeds { height: 1; padding: 0 1; background: $panel; }
    Asking, Told { align: center middle; }
    Asking Vertical { width: 64; height: auto; padding: 1 2; background: $surface; }
    Asking Vertical { border: round $warning; }
    Asking Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
    Asking Button { margin-left: 2; }
    Told VerticalScroll { width: 90%; height: 80%; padding: 1 2; background: $surface; }
    Told VerticalScroll { border: round $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"choose({at})", show=False) for at in range(1, len(LISTS) + 1)),
        Binding("q", "quit", "quit"),
        Binding("escape", "back", "back"),
        Binding("slash", "find", "find"),
        Binding("tab", "turn", "next state", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, faena: Faena, *, by: str, every_s: float) -> None:
        super().__init__()
        self.faena, self.by, self.every_s = faena, by, every_s
        self.way: list[Listing] = [Queues(faena, by)]
        """The list that is shown, last, and those that Escape leads back to."""
        self.reading = Reading("reading", ())
        self.wanted = ""
        self._lists, self._said = Static(id="lists"), Static(id="said")
        self._table = DataTable[Text](id="rows", cursor_type="row", zebra_stripes=True)
        self._find = Input(id="find", placeholder="part of a row")
        self._deeds = Static(id="deeds")

    @property
    def listing(self) -> Listing:
        """What is shown."""
        return self.way[-1]

    def compose(self) -> ComposeResult:
        """The screen, from the top."""
        yield from (self._lists, self._said, self._table, self._find, self._deeds)

    def on_mount(self) -> None:
        """Begin to look."""
        self.title = f"faena monitor {self.faena.name}"
        self._show_list()
        self.set_interval(self.every_s, self._tick)

    # -- looking ----------------------------------------------------------------------------------

    def _show_list(self) -> None:
        """Another list is shown now."""
        kind = type(self.way[0])
        names = "  ".join(
            f"[{at}] {one.title}" if one is not kind else f"[{at}]*{one.title}"
            for at, one in enumerate(LISTS, 1)
        )
        self._lists.update(Text(f" {names}"))
        self._table.clear(columns=True)
        self._table.add_columns(*self.listing.heads)
        self.reading = Reading("reading", ())
        self._say(f"{self.listing.title}: reading")
        self.look()

    def _tick(self) -> None:
        if not any(one.group == _LOOK and one.is_running for one in self.workers):
            self.look()

    @work(exclusive=True, group=_LOOK)
    async def look(self) -> None:
        """Read the list once more, and no longer for what was shown before."""
        listing = self.listing
        try:
            with within(_READ_S):
                reading = await listing.read()
        except FaenaError as error:
            self._say(f"{listing.title}, as it was: {error}", is_bad=True)
            return
        if listing is self.listing:
            self.reading = reading
            self._say(f"{listing.title}: {reading.said}")
            self._fill()

    def _fill(self) -> None:
        """The rows that are wanted; the cursor stays on its row."""
        table, at, chosen = self._table, self._table.cursor_row, self.chosen
        table.clear()
        for row in self._wanted_rows():
            table.add_row(*(Text(plain(one), style=row.style) for one in row.cells), key=row.key)
        if chosen is not None and chosen.key in table.rows:
            at = table.get_row_index(chosen.key)
        if table.row_count:
            table.move_cursor(row=min(at, table.row_count - 1), animate=False)
        self._show_deeds()

    def _wanted_rows(self) -> list[Row]:
        wanted = self.wanted.lower()
        return [row for row in self.reading.rows if any(wanted in one.lower() for one in row.cells)]

    @property
    def chosen(self) -> Row | None:
        """The row below the cursor."""
        table = self._table
        if not table.is_valid_row_index(table.cursor_row):
            return None
        key = table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value
        return next((row for row in self.reading.rows if row.key == key), None)

    def _say(self, text: str, *, is_bad: bool = False) -> None:
        self._said.update(Text(plain(text), style="bold red" if is_bad else ""))

    def on_data_table_row_highlighted(self) -> None:
        """The cursor is on another row."""
        self._show_deeds()

    def _show_deeds(self) -> None:
        row = self.chosen
        deeds = self.listing.deeds(row) if row is not None else ()
        keys = [f"{one.key} {one.words}" for one in deeds]
        keys += ["Enter open", "/ find", "Esc back", "q quit"]
        if isinstance(self.listing, Jobs):
            keys.insert(-3, "Tab next state")
        self._deeds.update(Text("   ".join(keys)))

    # -- going ------------------------------------------------------------------------------------

    def action_choose(self, number: int) -> None:
        """A list by its key."""
        self._go([LISTS[number - 1](self.faena, self.by)])

    async def action_back(self) -> None:
        """Stop finding, or go to the list before."""
        find = self._find
        if find.has_class("shown"):
            find.remove_class("shown")
            find.value = ""
            self._table.focus()
        elif len(self.way) > 1:
            self._go(self.way[:-1])

    def action_turn(self) -> None:
        """The jobs of the queue in the next state."""
        if isinstance(self.listing, Jobs):
            self._go([*self.way[:-1], self.listing.next()])

    def action_find(self) -> None:
        """Show only rows with what is typed."""
        find = self._find
        find.add_class("shown")
        find.focus()

    def on_input_changed(self, changed: Input.Changed) -> None:
        """Something was typed."""
        self.wanted = changed.value
        self._fill()

    def on_input_submitted(self) -> None:
        """The rows are what is wanted now."""
        self._table.focus()

    def on_data_table_row_selected(self) -> None:
        """Enter: the list behind the row, or all that is known of it."""
        row = self.chosen
        if row is None:
            return
        opened = self.listing.opened(row)
        if opened is not None:
            self._go([*self.way, opened])
        else:
            self._tell(row)

    def _go(self, way: list[Listing]) -> None:
        self.way = way
        self._show_list()

    @work(group="tell")
    async def _tell(self, row: Row) -> None:
        try:
            text = await self.listing.told(row)
        except FaenaError as error:
            text = str(error)
        if text is not None:
            await self.push_screen(Told(text))

    # -- doing ------------------------------------------------------------------------------------

    def on_key(self, key: Key) -> None:
        """A key of one of the row's deeds: ask, then do it."""
        row = self.chosen
        if row is None or self.focused is not self._table:
            return
        deed = next((one for one in self.listing.deeds(row) if one.key == key.key), None)
        if deed is not None:
            key.stop()
            self._ask(deed)

    @work(group="do")
    async def _ask(self, deed: Deed) -> None:
        if not await self.push_screen_wait(Asking(deed)):
            return
        await self._do(deed.do, deed.words)
        self.look()

    async def _do(self, do: Callable[[], Awaitable[Any]], words: str) -> None:
        try:
            await do()
        except FaenaError as error:
            self.notify(str(error), title=f"{words}: refused", severity="error", markup=False)
        else:
            self.notify("done", title=words, markup=False)


class Asking(ModalScreen[bool]):
    """Names what would happen; the safe answer has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)"),
        Binding("n,escape", "answer(False)"),
    ]

    def __init__(self, deed: Deed) -> None:
        super().__init__()
        self._deed = deed

    def compose(self) -> ComposeResult:
        """The question and two answers."""
        with Vertical():
            yield Label(Text(plain(self._deed.effect)))
            with Horizontal():
                yield Button("Leave it (n)", id="no")
                yield Button(Text(f"{self._deed.words} (y)"), id="yes", variant="warning")

    def on_mount(self) -> None:
        """The safe one first."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, pressed: Button.Pressed) -> None:
        """An answer was chosen."""
        self.dismiss(pressed.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        """An answer by its key."""
        self.dismiss(answer)


class Told(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss(None)")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """The text, which scrolls."""
        with VerticalScroll():
            yield Static(Text(plain(self._text)))

    def on_mount(self) -> None:
        """Keys scroll it."""
        self.query_one(VerticalScroll).focus()

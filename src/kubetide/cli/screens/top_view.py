"""The screen of ``kubetide top`` on a whole terminal, drawn anew as it changes; needs the package rich."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from kubetide.cli.screens.fullscreen import start_fullscreen
from kubetide.cli.screens.live import panel, table_of
from kubetide.cli.screens.top_text import cell_text, is_number, trend_text
from kubetide.loop import Table
from kubetide.simulate.answers.run_screen import Screen
from kubetide.simulate.answers.status import ALL_WELL
from kubetide.simulate.outcome.table import printable

_LEAST_SAID = 5


class TopView:
    """Shows screens on the whole terminal; gives it back when left."""

    def __init__(self, console: Console | None = None) -> None:
        self._shown: RenderableType = Text("")
        self._live = Live(
            console=console,
            screen=True,
            auto_refresh=False,
            get_renderable=lambda: self._shown,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        start_fullscreen(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, screen: Screen) -> None:
        """Draw a screen over the last one."""
        console = self._live.console
        self._shown = drawn(screen, console.height)
        self._live.refresh()

    def say(self, text: str) -> None:
        """Show a sentence, where there is no screen yet."""
        self._shown = panel("kubetide top", Text(printable(text), style="bright_black"))
        self._live.refresh()


def drawn(screen: Screen, height: int) -> Layout:
    """Return the screen for so many lines: each table gets what it needs or an even part of what there is."""
    heading = Text.assemble(
        (f" {printable(screen.name)} ", "bold"),
        (screen.state, "green" if screen.state == "live" else "yellow"),
        (f"  {screen.at}  ", "bright_black"),
        ("Ctrl-C ends it", "bright_black"),
        no_wrap=True,
    )
    facts = Text("  ", no_wrap=True)
    for one in screen.facts:
        facts.append(f"{one.label} ", "bright_black").append(f"{one.value} ", "bold")
        facts.append(f"{trend_text(one.trend)}   ", "blue")
    tables = [table for table in screen.tables if table.rows]
    notes = [
        Text(
            f" {printable(note)}",
            style="green" if note == ALL_WELL else "red",
            no_wrap=True,
            overflow="ellipsis",
        )
        for note in screen.notes
    ]
    left = height - 3 - len(notes) - _LEAST_SAID - 2
    sizes = _sizes([len(table.rows) + 3 for table in tables], left)
    layout = Layout()
    layout.split_column(
        Layout(Group(heading, facts), size=3),
        *(Layout(note, size=1) for note in notes),
        *(Layout(_drawn_table(table, size), size=size) for table, size in zip(tables, sizes, strict=True)),
        Layout(panel("Last decisions", _said(screen)), minimum_size=_LEAST_SAID),
    )
    return layout


def _sizes(widths: list[int], width: int) -> list[int]:
    """Share lines out: those that want little get it, the others the same."""
    sizes = [0] * len(widths)
    for taken, place in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        sizes[place] = max(4, min(widths[place], width // (len(widths) - taken)))
        width -= sizes[place]
    return sizes


def _drawn_table(table: Table, size: int) -> Panel:
    columns = [
        (name, len(name) if is_number(table, place) else 0) for place, name in enumerate(table.columns)
    ]
    found = table_of(*columns)
    rows = size - 3
    for row in table.rows[:rows]:
        found.add_row(*(Text(cell_text(cell, 200), overflow="ellipsis") for cell in row))
    more = f"and {len(table.rows) - rows} more" if len(table.rows) > rows else ""
    return panel(f"{table.title} {len(table.rows)}", found, bottom=more, style="bright_black")


def _said(screen: Screen) -> Group:
    lines: list[RenderableType] = []
    for one in screen.said:
        lines.append(Text.assemble((f"{one.at[11:19]} ", "bright_black"), (printable(one.text), "bold")))
        lines += [Padding(Text(printable(why), style="bright_black"), (0, 0, 0, 9)) for why in one.why[:4]]
    return Group(*(lines or [Text("none", style="bright_black")]))

"""The live view of `kubetide up`: the shop, the nodes and the last decisions on one screen.

It is drawn again every few sampling steps from what the run hands over; it reads nothing else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import click
from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kubetide.cli.screens.fullscreen import start_fullscreen
from kubetide.simulate.outcome.decisions import ARROWS, direction, time_of_day, why_lines
from kubetide.simulate.outcome.summary import minutes_lost
from kubetide.simulate.outcome.table import count, decimal, printable
from kubetide.simulate.outcome.timeline import Mark, ServiceSeries, Timeline
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.simulate.scenarios.show import is_endless
from kubetide.units.time import Instant, parse_duration, to_seconds

_BLOCKS = "▁▂▃▄▅▆▇█"
_NARROW = 110
_FRAMES_A_SECOND = 5
_MARKS_SHOWN = 40
_WARNINGS_SHOWN = 2
"""The last ones: with a run that is served and shown in a browser, both addresses."""
_STYLES = {1: "blue", 0: "bright_black", -1: "yellow"}


def can_show() -> bool:
    """Return whether standard output is a terminal that moves its cursor and shows block characters."""
    console = Console()
    return console.is_terminal and not console.is_dumb_terminal and console.encoding.lower().startswith("utf")


class LiveView:
    """Shows a run on the whole screen; gives the screen back when left.

    Args:
        scenario: What is run.
        speed: Times real time; sets how many steps make a frame.
        end: When the run ends.
        console: Where to draw; the terminal unless a test brings its own.
    """

    def __init__(
        self, scenario: Scenario, speed: float, end: Instant, console: Console | None = None
    ) -> None:
        self._name = printable(scenario.name)
        self._speed = speed
        self._start = start_of(scenario)
        self._end = end
        self._endless = is_endless(scenario, end)
        step_s = to_seconds(parse_duration(scenario.step))
        self._every = max(1, round(speed / _FRAMES_A_SECOND / step_s))
        self._sizes = {group.name: group.max for group in scenario.node_groups}
        self._timeline: Timeline | None = None
        self._marks: deque[Mark] = deque(maxlen=_MARKS_SHOWN)
        self._warnings: dict[str, None] = {}
        self._log = _LogLines(self.warn)
        self._live = Live(
            console=console,
            screen=True,
            auto_refresh=False,
            get_renderable=self.screen,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self._log)
        start_fullscreen(self._live)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        logging.getLogger().removeHandler(self._log)
        for warning in self._warnings:
            click.echo(f"kubetide: {warning}", err=True)

    def sample(self, timeline: Timeline) -> None:
        """Take the state after a sampling step, and draws when a frame is due."""
        self._timeline = timeline
        if len(timeline.pending) % self._every == 0:
            self._live.refresh()

    def mark(self, mark: Mark) -> None:
        """Take a decision; the next frame shows it."""
        self._marks.append(mark)

    def warn(self, text: str) -> None:
        """Keep a sentence for the screen and for after it; the same one once."""
        self._warnings[printable(text)] = None

    def screen(self) -> RenderableType:
        """Return the whole screen."""
        timeline = self._timeline
        if timeline is None or not timeline.pending:
            return Panel(
                Text(f"{self._name}: the cluster starts, first pods come up …", style="bright_black"),
                title="kubetide",
                title_align="left",
                border_style="bright_black",
            )
        narrow = self._live.console.width < _NARROW
        services = len(timeline.services) + 3
        groups = max(len(timeline.nodes) + 1, 5) + 2
        layout = Layout()
        layout.split_column(
            Layout(self._heading(timeline), size=2),
            Layout(panel("Services", _services(timeline, narrow=narrow)), size=services),
            Layout(name="cluster", size=groups),
            Layout(
                panel(
                    "Decisions", self._decisions(), bottom=" | ".join(list(self._warnings)[-_WARNINGS_SHOWN:])
                ),
                minimum_size=4,
            ),
        )
        layout["cluster"].split_row(
            Layout(panel("Nodes", _nodes(timeline, self._sizes, narrow=narrow)), ratio=2 if narrow else 3),
            Layout(panel("Cluster", _cluster(timeline)), ratio=2),
        )
        return layout

    def _heading(self, timeline: Timeline) -> RenderableType:
        now = Instant(timeline.start + round((len(timeline.pending) - 1) * timeline.step_s * 1e9))
        share = (now - self._start) / max(self._end - self._start, 1)
        until = "" if self._endless else f"until {time_of_day(self._end)} "
        line = Text.assemble(
            (f" {self._name} ", "bold"),
            (time_of_day(now), "bold"),
            (f"  {until}at {self._speed:g}x  ", "bright_black"),
            "" if self._endless else _bar(share, 1.0, 20, "blue"),
            ("  Ctrl-C ends it", "bright_black"),
        )
        line.no_wrap = True
        return line

    def _decisions(self) -> RenderableType:
        lines: list[RenderableType] = []
        for mark in reversed(self._marks):
            sign = direction(mark)
            lines.append(
                Text.assemble(
                    (time_of_day(mark.at), "bright_black"),
                    (f" {ARROWS[sign]} ", _STYLES[sign]),
                    (printable(mark.title), "bold"),
                )
            )
            lines += [Padding(Text(why, style="bright_black"), (0, 0, 0, 11)) for why in why_lines(mark)]
        return Group(*lines)


class _LogLines(logging.Handler):
    """Hands warnings of the program on, which would else be written across the screen."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on the sentence; the traceback, if any, stays out."""
        self._take(record.getMessage())


def panel(title: str, inside: RenderableType, bottom: str = "", style: str = "red") -> Panel:
    """Return a frame with a title, and with a sentence at its foot in a style of its own."""
    return Panel(
        inside,
        title=title,
        title_align="left",
        subtitle=Text(bottom, style=style) if bottom else None,
        border_style="bright_black",
        padding=(0, 1),
    )


def table_of(*columns: tuple[str, int]) -> Table:
    """Return a table of columns, each a heading and the cells it needs: to the left where 0, else to the right."""
    table = Table(box=None, expand=True, padding=(0, 1), header_style="bright_black", pad_edge=False)
    for name, cells in columns:
        table.add_column(name, justify="right" if cells else "left", min_width=cells or None, no_wrap=True)
    return table


def _services(timeline: Timeline, *, narrow: bool) -> Table:
    table = table_of(
        ("", 0), ("load so far", 0), ("req/s", 6), ("ready of desired", 0), ("", 7), ("SLO min", 7)
    )
    blocks, bar = (12, 14) if narrow else (24, 30)
    most = max(
        (max(*series.desired, *series.existing, 1) for series in timeline.services.values()), default=1
    )
    for name, series in sorted(timeline.services.items()):
        ready, desired, existing = series.ready[-1], series.desired[-1], series.existing[-1]
        lost = minutes_lost(series.violated, timeline.step_s)
        table.add_row(
            Text(printable(name), style="bold"),
            Text(trend(series, blocks), style="red" if series.violated[-1] else "blue"),
            count(series.offered[-1]),
            _pods_bar(ready, desired, existing, most, bar),
            Text(f"{ready}/{desired}", style="" if ready == desired else "yellow"),
            Text(count(lost), style="red" if lost else ""),
        )
    return table


def trend(series: ServiceSeries, blocks: int) -> str:
    """Return the load of the run so far as blocks, the tallest the highest; a block may be many steps."""
    offered = series.offered
    size = max(1, -(-len(offered) // blocks))
    highest = max(offered) or 1.0
    heights = (max(offered[at : at + size]) / highest for at in range(0, len(offered), size))
    return "".join(_BLOCKS[min(7, int(height * 8))] for height in heights).ljust(blocks)


def _pods_bar(ready: int, desired: int, existing: int, most: int, width: int) -> Text:
    """Full for ready pods, shaded for those that exist, dotted for those only desired."""
    cells = min(1.0, width / most)
    first = round(ready * cells)
    second = max(0, round(existing * cells) - first)
    third = max(0, round(desired * cells) - first - second)
    return Text.assemble(("█" * first, "blue"), ("▒" * second, "yellow"), ("·" * third, "yellow"))


def _nodes(timeline: Timeline, sizes: dict[str, int], *, narrow: bool) -> Table:
    table = table_of(("", 0), ("nodes ready", 0), ("", 7))
    widest = 10 if narrow else 24
    for group, counts in sorted(timeline.nodes.items()):
        size = max(sizes.get(group, 0), 1)
        table.add_row(
            Text(printable(group), style="bold"),
            _bar(counts[-1], size, min(size, widest), "green"),
            f"{counts[-1]} of {size}",
        )
    return table


def _cluster(timeline: Timeline) -> Table:
    table = table_of(("", 0), ("", 14))
    table.show_header = False
    pending = timeline.pending[-1]
    cpu = (timeline.cpu_used[-1], timeline.cpu_requested[-1], timeline.cpu_allocatable[-1])
    lost = sum(minutes_lost(series.violated, timeline.step_s) for series in timeline.services.values())
    rows: Sequence[tuple[str, str | Text]] = (
        ("pods without a node", Text(count(pending), style="red bold" if pending else "")),
        ("CPU used/asked/all", "/".join(decimal(cores, 0 if max(cpu) >= 100 else 1) for cores in cpu)),
        *(
            (("SLO minutes lost", Text(count(lost), style="red" if lost else "")),)
            if timeline.services
            else ()
        ),
        ("pods started", count(timeline.pod_starts)),
        ("cost", f"{decimal(timeline.cost[-1], 2)} {printable(timeline.currency)}"),
    )
    for label, value in rows:
        table.add_row(Text(label, style="bright_black"), value)
    return table


def _bar(value: float, full: float, width: int, style: str) -> Text:
    cells = max(0, min(width, round(value / full * width)))
    return Text.assemble(("█" * cells, style), ("·" * (width - cells), "bright_black"))

"""``kubetide status``: one page of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetide.cli.common.dashboard import Dashboard, run_option
from kubetide.cli.common.dashboard import status_of as dashboard_status
from kubetide.cli.common.moment import at_option, moment_at
from kubetide.cli.common.numpy_threads import keep_numpy_single_threaded
from kubetide.cli.common.offered_commands import commands_with_folder
from kubetide.cli.common.structured import TABLE, WIDE, output_option, structured

if TYPE_CHECKING:
    from kubetide.loop import Cell, Table
    from kubetide.ports.clock import Clock
    from kubetide.simulate.answers.status import Status

_MOST_ROWS = 20
_WIDEST = 100
_SECONDS = 5


@click.command("status")
@output_option(wide="all rows, and texts in full length")
@at_option()
@click.option("--watch", "-w", is_flag=True, help=f"Refresh it every {_SECONDS} seconds, until Ctrl-C.")
@run_option()
def command(output: str, at: str | None, watch: bool, out: Path | Dashboard) -> None:
    """Show loops, node groups, HPAs, what waits, is blocked or has a problem, and the last decisions on one page.

    Reads the decision records of a run, also of a running one, and shows the state at their end, or --at a time.

    \b
    Examples:
      kubetide status
      kubetide status --out monday -o json
      kubetide status --at 12:20
      kubetide status --watch
    """  # noqa: D301  click marks paragraphs with the character, not with two
    keep_numpy_single_threaded()
    if watch and at is not None:
        raise click.UsageError("--watch shows the end of the records; leave out --at")
    if not watch:
        click.echo(_page(out, output, at))
        return
    from kubetide.runtime.timing.clock import run_real
    from kubetide.units.time import seconds

    async def main(clock: Clock) -> None:
        while True:
            page = _page(out, output)
            click.clear()
            click.echo(page)
            await clock.sleep(seconds(_SECONDS))

    run_real(main)


def _page(out: Path | Dashboard, form: str, at: str | None = None) -> str:
    from kubetide.simulate.answers.status import status_of

    if isinstance(out, Dashboard):
        status, tables = dashboard_status(out, at)
    else:
        status, tables = status_of(out, moment_at(at, out))
    if form not in (TABLE, WIDE):
        return structured(status, form)
    text = status_text(status, tables, whole=form == WIDE)
    if isinstance(out, Dashboard):
        return text
    return commands_with_folder(out, text, None if at is None else status.at)


def status_text(status: Status, tables: Sequence[Table], *, whole: bool = False) -> str:
    """Return the page as text: a block for each table that has rows, and a line for those without.

    ``whole``: with all rows, and texts in full length.
    """
    from kubetide.loop import Table
    from kubetide.simulate.outcome.table import printable

    loops = Table(
        "loops",
        ("loop", "last tick", "tick", "run", "decisions/h", "in vain/h"),
        tuple(
            (one.name, one.last_tick, one.tick, one.state, one.decisions, one.failures)
            for one in status.loops
        ),
    )
    answer = [f"  {printable(text)}" for text in status.answer]
    blocks = ["\n".join((f"at {status.at}", *answer)), _block(loops, whole=whole)]
    blocks += [_block(table, whole=whole) for table in tables]
    decisions = [
        f"  {one.at} {one.loop:<10} {printable(one.text)}{' (in vain)' if one.in_vain else ''}"
        for one in status.decisions
    ]
    blocks.append("\n".join(["last decisions", *(decisions or ["  none"])]))
    return "\n\n".join(blocks)


def _block(table: Table, *, whole: bool) -> str:
    from kubetide.simulate.outcome.table import printable

    if not table.rows:
        return f"{table.title}: none"
    rows = table.rows if whole else table.rows[:_MOST_ROWS]
    shown = [[_text(cell, whole=whole) for cell in row] for row in rows]
    right = [
        all(isinstance(row[i], int | float | None) for row in table.rows) for i in range(len(table.columns))
    ]
    lines = [list(table.columns), *shown]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    text = [
        "  "
        + "  ".join(
            _aligned(cell, width, right=side) for cell, width, side in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]
    if len(table.rows) > len(shown):
        text.append(f"  and {len(table.rows) - len(shown)} more; -o wide shows all")
    return "\n".join([printable(table.title), *text])


def _text(cell: Cell, *, whole: bool) -> str:
    from kubetide.simulate.outcome.table import printable

    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    text = printable(str(cell))
    return text if whole or len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _aligned(text: str, width: int, *, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)

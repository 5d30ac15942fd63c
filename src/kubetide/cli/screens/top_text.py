"""The screen of ``kubetide top`` as plain text: for scripts, and for terminals without the live view."""

from __future__ import annotations

from kubetide.loop import Cell, Table
from kubetide.simulate.answers.run_screen import Screen
from kubetide.simulate.outcome.table import printable

BLOCKS = "▁▂▃▄▅▆▇█"
_MOST_ROWS = 15
_MOST_SAID = 10
_WIDEST = 60


def trend_text(trend: tuple[float | None, ...]) -> str:
    """Return values as blocks, the tallest the highest; a blank where none is known."""
    top = max((value for value in trend if value is not None), default=0) or 1.0
    heights = (None if value is None else min(7, int(value / top * 8)) for value in trend)
    return "".join(" " if height is None else BLOCKS[height] for height in heights)


def cell_text(cell: Cell, widest: int = _WIDEST) -> str:
    """Return a cell for people; control characters are shown, not sent."""
    if cell is None:
        return "-"
    text = f"{cell:.4g}" if isinstance(cell, float) else printable(str(cell))
    return text if len(text) <= widest else f"{text[: widest - 3]}..."


def screen_text(screen: Screen, width: int | None = None) -> str:
    """Return the screen; ``width``: lines are cut there."""
    lines = [f"{printable(screen.name)}  {screen.state}  {screen.at}"]
    lines += ["  ".join(f"{one.label} {one.value}" for one in screen.facts)]
    lines += [printable(note) for note in screen.notes]
    for table in screen.tables:
        lines += ["", *_block(table)]
    lines += ["", "last decisions" if screen.said else "last decisions: none"]
    lines += [f"  {one.at}  {printable(one.text)}" for one in screen.said[:_MOST_SAID]]
    return "\n".join(line if width is None else line[:width] for line in lines)


def _block(table: Table) -> list[str]:
    if not table.rows:
        return [f"{table.title}: none"]
    shown = [list(table.columns), *([cell_text(cell) for cell in row] for row in table.rows[:_MOST_ROWS])]
    widths = [max(len(row[place]) for row in shown) for place in range(len(table.columns))]
    right = [is_number(table, place) for place in range(len(table.columns))]
    lines = [f"{table.title}  {len(table.rows)}"]
    for row in shown:
        cells = (
            cell.rjust(width) if side else cell.ljust(width)
            for cell, width, side in zip(row, widths, right, strict=True)
        )
        lines.append(f"  {'  '.join(cells)}".rstrip())
    if len(table.rows) > _MOST_ROWS:
        lines.append(f"  and {len(table.rows) - _MOST_ROWS} more")
    return lines


def is_number(table: Table, place: int) -> bool:
    """Return whether a column holds numbers."""
    return all(isinstance(row[place], int | float | None) for row in table.rows)

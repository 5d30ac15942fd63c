"""``kubetide replay``: the recorded decisions, decided again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.exits import FAILED


@click.command("replay")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("kubetide-out"))
def command(folder: Path) -> None:
    """Replay every recorded tick in FOLDER and compare the bytes.

    FOLDER is what a run wrote with --out (default: kubetide-out). Each loop gets the recorded
    input, and must return the recorded result. Exit status 1 if it does not: the records come from
    another version, or a decision depended on something outside of its input; also if the records
    break off within a line. Records without a clean end are reported.

    \b
    Examples:
      kubetide simulate web-shop --out monday
      kubetide replay monday
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.simulate.answers.replay import bytes_of, replay

    with click.progressbar(
        length=bytes_of(folder), label=str(folder), file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        found = replay(folder, progress=bar.update)
    different = {difference.loop for difference in found.differences}
    for loop, records in found.records.items():
        end = "then a difference" if loop in different else "all bytes equal"
        click.echo(f"{loop}: {records:,} records decided again, {end}")
    for difference in found.differences:
        click.echo(str(difference), err=True)
    for note in found.notes:
        click.echo(note, err=True)
    for early in found.early_ends:
        click.echo(str(early), err=early.torn)
    if different or any(early.torn for early in found.early_ends):
        sys.exit(FAILED)

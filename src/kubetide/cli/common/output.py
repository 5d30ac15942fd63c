"""What a run leaves: files in its folder, a summary on standard output, an exit status."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from kubetide.cli.common.exits import FAILED, STUCK
from kubetide.cli.common.offered_commands import commands_with_folder
from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.folder import REPORT, SUMMARY, TIMELINE, write_bytes_whole, write_whole
from kubetide.simulate.outcome.table import printable, summary_table
from kubetide.simulate.run import RunResult
from kubetide.web.report import write_report


def finish(result: RunResult, out: Path, *, strict: bool = False) -> None:
    """Print the summary, and write report, summary and timeline, also where nobody reads what is printed.

    Exits with 1 if an invariant was broken, and with 3 if something could not scale and the run is ``strict``.
    """
    try:
        click.echo(commands_with_folder(out, summary_table(result.summary)))
    finally:
        write_results(result, out)
    click.echo()
    if result.pace is not None and result.pace.lost:
        click.echo(
            f"pace     ran at {result.pace.reached:,.0f}x, not {result.pace.speed:,g}x: the clock waited for the work, "
            "so the figures are those of any speed"
        )
    click.echo(f"report   {out / REPORT}")
    click.echo(f"numbers  {out / SUMMARY}, {out / TIMELINE}")
    if any((out / "records").glob("*.jsonl")):
        click.echo(f"records  {out / 'records'}, for `kubetide explain`, `kubetide replay` and `kubetide ui`")
    else:
        click.echo("records  none: the run ended before the first decision")
    if tell_broken(result):
        sys.exit(FAILED)
    if strict and result.stuck:
        click.echo(f"strict: {len(result.stuck)} thing(s) could not scale, see the notices above", err=True)
        sys.exit(STUCK)


def tell_stuck(result: RunResult, variant: str, out: Path) -> bool:
    """Print what could not scale in a variant, on standard error; return whether anything could not."""
    for sentence in result.stuck:
        click.echo(f"strict: {variant}: {commands_with_folder(out, printable(sentence))}", err=True)
    return bool(result.stuck)


def write_results(result: RunResult, out: Path) -> None:
    """Write report, summary and timeline of a run into its folder. Raises KubetideError where that fails."""
    try:
        _write(out / SUMMARY, result.summary)
        _write(out / TIMELINE, result.timeline)
        write_whole(out / REPORT, lambda path: write_report(path, out))
    except OSError as error:
        raise KubetideError(
            f"cannot write the report under {out}: {error.strerror}; free space there or choose another --out"
        ) from error


def tell_broken(result: RunResult) -> bool:
    """Print the invariants that were broken, on standard error; return whether any was."""
    if result.violations:
        click.echo(f"{len(result.violations)} invariant(s) broken:", err=True)
        for violation in result.violations:
            click.echo(f"  {violation}", err=True)
    return bool(result.violations)


def _write(path: Path, value: msgspec.Struct) -> None:
    write_bytes_whole(path, msgspec.json.encode(value) + b"\n")

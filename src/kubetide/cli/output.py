"""What a run leaves: files in its folder, a summary on standard output, an exit status."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from kubetide.ports.errors import KubetideError
from kubetide.simulate.report import write_report
from kubetide.simulate.run import RunResult
from kubetide.simulate.table import summary_table


def finish(name: str, result: RunResult, out: Path) -> None:
    """Writes report, summary and timeline, prints the summary, and exits with 1 if an invariant was broken."""
    click.echo(summary_table(result.summary))
    try:
        write_report(out / "report.html", name, result.timeline, result.summary)
        _write(out / "summary.json", result.summary)
        _write(out / "timeline.json", result.timeline)
    except OSError as error:
        raise KubetideError(
            f"cannot write the report under {out}: {error.strerror}; free space there or choose another --out"
        ) from error
    click.echo()
    click.echo(f"report   {out / 'report.html'}")
    click.echo(f"numbers  {out / 'summary.json'}, {out / 'timeline.json'}")
    click.echo(f"records  {out / 'records'}, for `kubetide explain` and `kubetide replay`")
    if result.violations:
        click.echo(f"{len(result.violations)} invariant(s) broken:", err=True)
        for violation in result.violations:
            click.echo(f"  {violation}", err=True)
        sys.exit(1)


def _write(path: Path, value: msgspec.Struct) -> None:
    path.write_bytes(msgspec.json.encode(value) + b"\n")

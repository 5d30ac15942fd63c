"""``kubetide plan``: what is to come."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.common.dashboard import Dashboard, plan_of, run_option
from kubetide.cli.common.moment import at_option, moment_at
from kubetide.cli.common.numpy_threads import keep_numpy_single_threaded
from kubetide.cli.common.structured import TABLE, output_option, structured


@click.command("plan")
@click.option("--ahead", default="1h", show_default=True, metavar="DURATION", help="How far to look ahead.")
@at_option()
@output_option()
@run_option()
def command(ahead: str, at: str | None, output: str, out: Path | Dashboard) -> None:
    """Show coming events: changes of time tables, forecast load, requested nodes, and their reasons.

    Reads the decision records of a run, also of a running one.

    \b
    Examples:
      kubetide plan
      kubetide plan --ahead 12h --at 08:00
    """  # noqa: D301  click marks paragraphs with the character, not with two
    keep_numpy_single_threaded()
    from kubetide.simulate.answers.ahead import plan_ahead, plan_text
    from kubetide.units.time import TimeFormatError, parse_duration

    try:
        length = parse_duration(ahead)
    except TimeFormatError as error:
        raise click.BadParameter(f"{ahead!r} is not a duration such as 90m", param_hint="--ahead") from error
    if length <= 0:
        raise click.BadParameter(f"{ahead!r} is not above 0", param_hint="--ahead")
    if isinstance(out, Dashboard):
        found = plan_of(out, ahead, at)
    else:
        found = plan_ahead(out, length, moment_at(at, out))
    click.echo(plan_text(found, length) if output == TABLE else structured(found, output))

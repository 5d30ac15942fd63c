"""``kubetide config``: what a run would be configured with."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.run import OPEN, configuration
from kubetide.runtime.prometheus_settings import SECRETS


@click.group("config")
def command() -> None:
    """Look into the configuration of `kubetide run`."""


@command.command("check", context_settings=OPEN)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings (YAML).")
@click.pass_context
def check(context: click.Context, config: Path | None) -> None:
    """Read file, environment and flags as `kubetide run` does, and show each setting and where it stands.

    What is wrong is named with its place and the fix, with exit status 1. Nothing is connected to.

    \b
    Examples:
      kubetide config check --config kubetide.yaml
      KUBETIDE_SCAN_INTERVAL=30s kubetide config check --act
    """  # noqa: D301  click marks paragraphs with the character, not with two
    found = configuration(config, context.args)
    width = max((len(name) for name in found.values), default=0)
    for name in sorted(found.values):
        shown = "(secret)" if name in SECRETS else str(found.values[name])
        click.echo(f"{name:<{width}}  {shown:<20}  {found.sources[name]}")
    click.echo(f"{len(found.values)} settings stated, all others at their defaults; it can be run")

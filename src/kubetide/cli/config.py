"""``kubetide config``: what a run would be configured with."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.common.completing import WithSettings
from kubetide.cli.common.groups import Commands
from kubetide.cli.common.structured import TABLE, output_option, structured
from kubetide.cli.run import OPEN, configuration
from kubetide.runtime.configuration.prometheus_settings import SECRETS

SECRET = SECRETS | {"notify-url"}
HIDDEN = "(not shown)"
"""Stands for what may hold a secret."""


@click.group("config", cls=Commands)
def command() -> None:
    """Inspect the configuration of `kubetide run`."""


@command.command("check", cls=WithSettings, context_settings=OPEN)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings (YAML).")
@output_option()
@click.pass_context
def check(context: click.Context, config: Path | None, output: str) -> None:
    """Read file, environment and flags as `kubetide run` does, and show each setting and its source.

    Errors are printed with their place and the fix, with exit status 1. It opens no connection.

    \b
    Examples:
      kubetide config check --config kubetide.yaml
      KUBETIDE_SCAN_INTERVAL=30s kubetide config check --act
    """  # noqa: D301  click marks paragraphs with the character, not with two
    found = configuration(config, context.args)
    values = {name: HIDDEN if name in SECRET else value for name, value in found.values.items()}
    if output != TABLE:
        settings = [
            {"name": name, "value": values[name], "source": found.sources[name]} for name in sorted(values)
        ]
        click.echo(structured({"settings": settings}, output))
        return
    width = max((len(name) for name in found.values), default=0)
    for name in sorted(found.values):
        click.echo(f"{name:<{width}}  {values[name]!s:<20}  {found.sources[name]}")
    count = len(found.values)
    stated = "1 setting is stated" if count == 1 else f"{count} settings are stated"
    click.echo(f"{stated}, all others at their defaults; it can be run")

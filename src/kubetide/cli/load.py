"""``kubetide load``: the load of a running embedded cluster."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetide.cli.common.playing import ask, kubeconfig_option
from kubetide.cli.common.structured import TABLE, columns, output_option, structured

if TYPE_CHECKING:
    from kubetide.simulate.playground.requests import Loads


@click.command("load")
@click.argument("service", required=False)
@click.argument("requests", type=float, required=False, metavar="[REQUESTS_PER_SECOND]")
@click.option("--reset", is_flag=True, help="Restore the scenario's load of SERVICE.")
@kubeconfig_option()
@output_option()
def command(service: str | None, requests: float | None, reset: bool, kubeconfig: Path, output: str) -> None:
    """Show the load of a run that `kubetide up --serve` serves, or set that of SERVICE.

    SERVICE is the name of a service of the scenario, or namespace/name. The load applies from now on, without an
    end and without noise; the decisions of the run list the change.

    \b
    Examples:
      kubetide load
      kubetide load web 500
      kubetide load web --reset
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.simulate.playground.requests import Loads

    if requests is not None and not isfinite(requests):
        raise click.BadParameter(f"{requests} is no load; write a number", param_hint="REQUESTS_PER_SECOND")
    if service is None:
        if reset:
            raise click.UsageError("--reset of which service? `kubetide load` lists them")
        found = ask(kubeconfig, "GET", "load", Loads)
    elif reset == (requests is not None):
        said = (
            "state a number or --reset, not both"
            if reset
            else f"how much? {service} 500, or {service} --reset"
        )
        raise click.UsageError(said)
    else:
        body = {"service": service, "requestsPerSecond": requests}
        found = ask(kubeconfig, "PUT", "load", Loads, body=body)
    click.echo(_table(found) if output == TABLE else structured(found, output))


def _table(found: Loads) -> str:
    from kubetide.simulate.outcome.table import printable

    return columns(
        ("SERVICE", "REQUESTS/S", "LOAD", "READY"),
        [
            (
                printable(one.service.removeprefix("default/")),
                f"{one.requests_per_second:.1f}",
                "the scenario's" if one.set_to is None else f"set to {one.set_to:g}",
                f"{one.ready}/{one.replicas}",
            )
            for one in found.loads
        ],
    )

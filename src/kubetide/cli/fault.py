"""``kubetide fault``: what goes wrong in a running embedded cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetide.cli.common.playing import ask, kubeconfig_option
from kubetide.cli.common.structured import TABLE, columns, output_option, structured

if TYPE_CHECKING:
    from kubetide.simulate.playground.requests import Faults


@click.command("fault")
@click.argument("words", nargs=-1, metavar="[KIND [GROUP]] | clear [KIND [GROUP]]")
@click.option(
    "--for",
    "length",
    metavar="DURATION",
    help="End it after this much of the cluster's time, such as 90s or 10m.",
)
@click.option(
    "--probability", type=float, default=1.0, show_default=True, help="How likely it hits each time."
)
@kubeconfig_option()
@output_option()
def command(
    words: tuple[str, ...], length: str | None, probability: float, kubeconfig: Path, output: str
) -> None:
    """List the possible faults of a run that `kubetide up --serve` serves, inject a fault, or clear faults.

    KIND is one of those that `kubetide fault` lists; GROUP is a node group, by default all of them. A fault stays
    until it is cleared or --for is over; the decisions of the run list both.

    \b
    Examples:
      kubetide fault
      kubetide fault stock-out general
      kubetide fault node-failure --for 5m
      kubetide fault clear stock-out
      kubetide fault clear
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.simulate.playground.requests import Faults

    clears = words[:1] == ("clear",)
    named = words[1:] if clears else words
    if len(named) > 2:
        raise click.UsageError(f"{named[2]} is too much: write KIND and GROUP")
    kind, group = (*named, "", "")[:2]
    if clears:
        query = {key: value for key, value in (("kind", kind), ("group", group)) if value}
        found = ask(kubeconfig, "DELETE", "faults", Faults, query=query)
    elif kind:
        body = {"kind": kind, "group": group, "for": length or "", "probability": probability}
        found = ask(kubeconfig, "POST", "faults", Faults, body=body)
    else:
        found = ask(kubeconfig, "GET", "faults", Faults)
    if output != TABLE:
        click.echo(structured(found, output))
        return
    click.echo(_active(found) if words else f"{_kinds(found)}\n\n{_active(found)}")


def _kinds(found: Faults) -> str:
    rows = [(one.kind, "yes" if one.takes_group else "", one.about) for one in found.kinds]
    return f"{columns(('KIND', 'GROUP', 'WHAT GOES WRONG'), rows)}\n\nnode groups: {', '.join(found.groups)}"


def _active(found: Faults) -> str:
    from kubetide.simulate.outcome.table import printable

    if not found.active:
        return "no fault is on"
    return columns(
        ("ON", "WHERE", "SINCE", "UNTIL"),
        [(one.kind, printable(one.where), one.since, one.until or "cleared") for one in found.active],
    )

"""``kubetide explain``: why, in plain words."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource


@click.command("explain")
@click.argument("kind")
@click.argument("name")
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of a pod or an HPA.")
@click.option(
    "--at",
    metavar="TIME",
    help="13:00 (the first tick in that minute), 13:00:40 or 2026-03-02T13:00:40Z (that whole second), or 90m "
    "after the start of the run.  [default: the end]",
)
@click.option(
    "--nodes",
    is_flag=True,
    help="Of a pod: what each node says to it, and the smallest change that would let it in.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out"),
    show_default=True,
    help="Folder that the run writes to.",
)
def command(kind: str, name: str, namespace: str, at: str | None, nodes: bool, out: Path) -> None:
    """Say why a pod waits, an HPA wants what it wants, a node stays or goes, a node group cannot grow.

    NAME of a pod or an HPA may say its namespace: shop/cart.

    KIND is pod, hpa, node, nodegroup, provisioningrequest, capacitybuffer, vpa (its recommendation), update (of a pod, by a VPA), or what another package's loop explains.

    Reads the decision records of a run, also of a `kubetide up` that is running, and decides again.
    For a pending pod: each node group's first rule that refuses it, with the numbers on both sides,
    where the group's template comes from, and the smallest change that would help. With --nodes the
    same of each node there is.

    \b
    Examples:
      kubetide explain pod storefront-7d9f8c6b5-x2kqp
      kubetide explain pod storefront-7d9f8c6b5-x2kqp --nodes
      kubetide explain hpa storefront --at 12:20
      kubetide explain hpa shop/cart
      kubetide explain nodegroup burst --at 2026-03-02T12:30:00Z
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.simulate.when import read_moment, start_of_records
    from kubetide.simulate.why import explain_object, explained_kinds

    kinds = explained_kinds(out if out.is_dir() else None)
    if kind not in kinds:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(kinds)}", param_hint="KIND")
    view = "nodes" if nodes else ""
    if view and view not in kinds[kind]:
        raise click.UsageError(f"--nodes is about pods; leave it out, or ask about a pod and not a {kind}")
    moment = None
    if at is not None:
        start = start_of_records(out)
        try:
            moment = read_moment(at, start)
        except ValueError as error:
            raise click.BadParameter(
                f"{at!r} is neither a time (2026-03-02T13:00:00Z), nor a time of day (13:00), nor a duration "
                "from the start (90m)",
                param_hint="--at",
            ) from error
    if "/" in name and kind not in ("node", "nodegroup"):
        given = click.get_current_context().get_parameter_source("namespace")
        stated, name = name.split("/", 1)
        if given is not ParameterSource.DEFAULT and stated != namespace:
            raise click.UsageError(
                f"{stated}/{name} names another namespace than --namespace {namespace}; state one"
            )
        namespace = stated
    click.echo(explain_object(out, kind, name, namespace=namespace, at=moment, view=view))

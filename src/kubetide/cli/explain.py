"""``kubetide explain``: why, in plain words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from kubetide.cli.common.completing import complete_kind, complete_object, names_known
from kubetide.cli.common.dashboard import Dashboard, answer_of, names_at, run_option
from kubetide.cli.common.moment import at_option, moment_at
from kubetide.cli.common.numpy_threads import keep_numpy_single_threaded
from kubetide.cli.common.structured import TABLE, WIDE, output_option
from kubetide.units.lists import listed

if TYPE_CHECKING:
    from kubetide.simulate.answers.when import Moment
    from kubetide.simulate.answers.why import Answer

_NAMED = 10
"""Names that are offered where none was given."""


@click.command("explain")
@click.argument("kind", shell_complete=complete_kind)
@click.argument("name", required=False, shell_complete=complete_object)
@click.option("--namespace", "-n", default="default", show_default=True, help="Namespace of a pod or an HPA.")
@at_option()
@click.option(
    "--nodes",
    is_flag=True,
    help="For a pod: the verdict of each node, and the smallest change that would let the pod in.",
)
@run_option()
@output_option(wide="all that was decided before, each with its reasons")
def command(
    kind: str,
    name: str | None,
    namespace: str,
    at: str | None,
    nodes: bool,
    out: Path | Dashboard,
    output: str,
) -> None:
    """Explain why a pod waits, an HPA has its number of replicas, a node stays or goes, a node group cannot grow.

    NAME of a pod or an HPA may say its namespace: shop/cart.

    KIND is pod (po), hpa, node (no), nodegroup (ng), provisioningrequest, capacitybuffer, vpa (its recommendation), update
    (of a pod, by a VPA), schedule, or what another package's loop explains; deploy, sts or rs for the HPA, time
    table or VPA that scales it. KIND/NAME is one word for both.

    Reads the decision records of a run, also of a `kubetide up` that is running, and decides again. With the address of
    a dashboard as --out it asks that, such as the one beside `kubetide run` on a cluster.
    For a pending pod: each node group's first rule that rejects it, with the numbers on both sides,
    where the group's template comes from, and the smallest change that would help. With --nodes the
    same for each existing node.

    \b
    Examples:
      kubetide explain pod storefront-9fgc4ch7dn-t8pfc
      kubetide explain pod storefront-9fgc4ch7dn-t8pfc --nodes
      kubetide explain hpa storefront --at 12:20
      kubetide explain hpa shop/cart
      kubetide explain deploy storefront
      kubetide explain no/general-7xcr6 -o json
      kubetide explain nodegroup burst --at 2026-03-02T12:30:00Z
      kubetide explain hpa web --out 'http://127.0.0.1:8080/?token=...'
    """  # noqa: D301  click marks paragraphs with the character, not with two
    keep_numpy_single_threaded()
    from kubetide.cli.common.kinds import WORKLOADS, kind_of
    from kubetide.simulate.answers.when import start_of_records
    from kubetide.simulate.answers.why import answer_about, kinds_of, views_of

    folder = None if isinstance(out, Dashboard) else out
    records = folder if folder is not None and (folder / "records").is_dir() else None
    if name is None:
        if folder is not None:
            start_of_records(folder)
        kind, slash, name = kind.partition("/")
        if not slash:
            asked = kind_of(kind, kinds_of(records))
            known = names_at(out, asked) if isinstance(out, Dashboard) else names_known(records, kind)
            there = (
                f"there are {listed(known, _NAMED)}" if known else "none is known at the end of the records"
            )
            raise click.UsageError(f"which {kind}? write {kind} NAME or {kind}/NAME; {there}")
    kind = kind_of(kind, kinds_of(records))
    namespaced = kind not in ("node", "nodegroup")
    if "/" in name and namespaced:
        given = click.get_current_context().get_parameter_source("namespace")
        stated, name = name.split("/", 1)
        if given is not ParameterSource.DEFAULT and stated != namespace:
            raise click.UsageError(
                f"{stated}/{name} names another namespace than --namespace {namespace}; state one"
            )
        namespace = stated
    view = "nodes" if nodes else ""
    if isinstance(out, Dashboard):
        _echo(answer_of(out, kind, f"{namespace}/{name}" if namespaced else name, at=at, view=view), output)
        return
    moment = moment_at(at, out)
    if kind in WORKLOADS.values():
        kind, namespace, name = _scaler(out, f"{kind}/{namespace}/{name}", moment)
    if view and view not in views_of(kind, records):
        raise click.UsageError(f"--nodes is about pods; leave it out, or ask about a pod and not a {kind}")
    answer = answer_about(out, kind, name, namespace=namespace, at=moment, view=view, whole=output != TABLE)
    _echo(answer, output)


def _echo(answer: Answer, form: str) -> None:
    from kubetide.cli.common.structured import structured
    from kubetide.simulate.answers.why import answer_text

    click.echo(answer_text(answer, whole=form == WIDE) if form in (TABLE, WIDE) else structured(answer, form))


_POD_NAMES: Final = {
    "Deployment": r"-[a-z0-9]+-[a-z0-9]{5}",
    "ReplicaSet": r"-[a-z0-9]{5}",
    "StatefulSet": r"-[0-9]+",
}
"""How names of pods go on after that of their workload."""


def _pod_of(out: Path, kind: str, workload: str, at: Moment | None) -> str:
    """Return a pod of a workload, by its name; empty if none is there."""
    from kubetide.simulate.answers.why import objects_of

    named = re.compile(re.escape(workload) + _POD_NAMES[kind])
    return next(filter(named.fullmatch, objects_of(out, at, {"pod"}).get("pod", ())), "")


def _scaler(out: Path, target: str, at: Moment | None) -> tuple[str, str, str]:
    """Return kind, namespace and name of what scales a workload. Raises KubetideError where nothing does."""
    import difflib

    from kubetide.cli.common.offered_commands import commands_with_folder
    from kubetide.ports.errors import KubetideError
    from kubetide.simulate.answers.why import scalers_of, targets_of

    found = scalers_of(out, target, at)
    if not found:
        kind, _, name = target.partition("/")
        if pod := _pod_of(out, kind, name, at):
            asked = f"nothing scales {kind} {name}; about one of its pods ask: kubetide explain pod {pod}"
            raise KubetideError(commands_with_folder(out, asked))
        there = targets_of(out, kind)
        # By the name alone: a namespace in common makes no two names alike.
        names = {one.rpartition("/")[2]: one for one in there}
        if near := difflib.get_close_matches(name.rpartition("/")[2], names, n=1):
            hint = f"did you mean {names[near[0]]}?"
        elif there:
            hint = f"an HPA, a time table or a VPA has {listed(there, _NAMED)}"
        else:
            hint = f"no {kind} has an HPA, a time table or a VPA here"
        raise KubetideError(f"nothing scales {kind} {name}; {hint}")
    (kind, subject), *others = found
    for other, of in others:
        also = f"kubetide: {other} {of} scales it, too; ask: kubetide explain {other} {of}"
        click.echo(commands_with_folder(out, also), err=True)
    namespace, _, name = subject.partition("/")
    return kind, namespace, name

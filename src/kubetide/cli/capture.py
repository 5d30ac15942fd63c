"""``kubetide capture``: a scenario from the records of a run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
import msgspec

from kubetide.cli.exits import FAILED


@click.command("capture")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/captured"),
    show_default=True,
    help="Folder for the scenario and its traces.",
)
@click.option("--name", default="captured", show_default=True, help="What the scenario is called.")
@click.option("--no-score", is_flag=True, help="Do not simulate the scenario to see how near it comes.")
@click.option("--seed", type=int, default=1, show_default=True, help="What that simulation is drawn from.")
def command(folder: Path, out: Path, name: str, no_score: bool, seed: int) -> None:
    """Make a scenario of the records in FOLDER: what was there, its load, its node groups.

    FOLDER is what `kubetide run`, also in advice mode, `up` or `simulate` wrote. The scenario has the workloads, HPAs and
    disruption budgets of the beginning, node groups with prices and measured boot times, and for each HPA's target a
    load from the CPU usage of its pods. What was assumed, and what the records do not show, is printed and stands in
    the scenario. Then the scenario is simulated and set beside the records: a score card. Writes into --out:

    \b
      scenario.yaml  for `kubetide simulate`, `what-if`, `sweep`, `tune` and `test`
      *.csv          the load of each service
      score.json     the score card, which those commands show beside what they compare

    \b
    Examples:
      kubetide capture kubetide-out --out my-shop
      kubetide capture /var/lib/kubetide --name monday --out monday
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.progress import simulated
    from kubetide.experiments.capture.cluster import LOOP as NODES
    from kubetide.experiments.capture.cluster import read_cluster
    from kubetide.experiments.capture.scenario import CaptureError, captured
    from kubetide.experiments.capture.score import CARD, scores
    from kubetide.experiments.capture.services import LOOP as HORIZONTAL
    from kubetide.experiments.capture.services import read_services
    from kubetide.runtime.folder import write_whole
    from kubetide.runtime.records import recorded_loops
    from kubetide.simulate.scenario import load_scenario
    from kubetide.simulate.table import Table, aligned, decimal, percent, printable

    loops = recorded_loops(folder)
    if NODES not in loops:
        raise CaptureError(
            f"{folder} has no records of the node loop, which tell the workloads and the node groups: "
            "record with --controllers=horizontal,nodes; advice mode is enough"
        )
    cluster = read_cluster(folder)
    services = read_services(folder) if HORIZONTAL in loops else None
    found = captured(name, cluster, services)
    scenario = out / "scenario.yaml"
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / CARD).unlink(missing_ok=True)
        for file, values in found.traces.items():
            text = "".join(f"{value:g}\n" for value in values)
            write_whole(out / file, lambda path, text=text: path.write_text(text))  # type: ignore[misc]
        write_whole(scenario, lambda path: path.write_text(found.text(), encoding="utf-8"))
    except OSError as error:
        raise CaptureError(f"cannot write under {out}: {error.strerror}; choose another --out") from error
    click.echo(f"{printable(name)}   {found.value['start']}, {found.value['duration']}\n")
    for note in found.notes:
        click.echo(f"- {printable(note)}")
    click.echo(f"\nscenario {scenario}")
    loaded = load_scenario(scenario)
    if no_score:
        return
    with tempfile.TemporaryDirectory() as made:
        result = simulated(loaded, base=out, out=Path(made), seed=seed, label=name)
        if result.interrupted:
            raise click.Abort
        there = recorded_loops(Path(made))
        again = (
            read_cluster(Path(made)),
            read_services(Path(made)) if HORIZONTAL in there else None,
        )
    card = scores((cluster, services), again)
    write_whole(out / CARD, lambda path: path.write_bytes(msgspec.json.encode(card) + b"\n"))
    rows = tuple(
        (
            printable(one.name),
            decimal(one.mean, 2),
            decimal(one.simulated, 2),
            percent(one.same / one.steps, 1),
            percent(one.near / one.steps, 1),
            f"{one.steps:,}",
        )
        for one in card
    )
    click.echo("\nsimulated under the same policy:\n")
    click.echo(aligned(Table(("", "recorded", "simulated", "same", "near", "steps"), rows)))
    click.echo("\nnear: within 1 replica; the same number of nodes within one tick's time")
    for violation in result.violations:
        click.echo(f"invariant broken: {violation}", err=True)
    if result.violations:
        sys.exit(FAILED)

"""``kubetide tune``: which settings to change, and what it brings."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.cells import cells_bar, cells_in, resumable, worker_options, workers_for
from kubetide.cli.common.exits import FAILED


@click.command("tune")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--knob",
    "knobs",
    multiple=True,
    required=True,
    metavar="NAME=LOW:HIGH|V1,V2",
    help="A setting that may change, names as of `kubetide what-if`; may be repeated.",
)
@click.option(
    "--keep",
    "keeps",
    multiple=True,
    help="What must hold, as in a policy; `now` is the scenario as it is. May be repeated. "
    "[default: sloMinutes <= now; without services pendingPodMinutes <= now]",
)
@click.option(
    "--minimize", default="cost", show_default=True, metavar="FIGURE", help="The figure to minimize."
)
@click.option(
    "--train",
    "train",
    multiple=True,
    metavar="NAME=V1,V2,...",
    help="Days or loads that the search runs on: a setting and its values; may be repeated.",
)
@click.option(
    "--judge",
    "judge",
    multiple=True,
    metavar="NAME=V1,V2,...",
    help="Days or loads that the result is evaluated on. [default: as --train]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=3,
    show_default=True,
    help="Search on seeds 1 to N, evaluate on N+1 to 2N.",
)
@click.option(
    "--trials", type=click.IntRange(1, 10_000), default=40, show_default=True, help="Combinations to try."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the search.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/tune"),
    show_default=True,
    help="Folder for the patch, the trials, the page and the finished cells.",
)
@worker_options
def command(
    scenario: Path,
    knobs: tuple[str, ...],
    keeps: tuple[str, ...],
    minimize: str,
    train: tuple[str, ...],
    judge: tuple[str, ...],
    seeds: int,
    trials: int,
    seed: int,
    out: Path,
    jobs: int | None,
    dask: str | None,
    resume: bool,
) -> None:
    """Search which settings of SCENARIO to change, and evaluate the result on runs that the search has not used.

    SCENARIO is a file or the name of a shipped example. Of the combinations of the knobs' values that meet every
    constraint in the mean of the training runs, the one with the lowest mean cost is evaluated on other seeds, and on
    other days if --judge names them. Nothing is applied. Writes into --out:

    \b
      patch.yaml     the objects that change, for kubectl, a kustomization or `kubetide what-if --patch`
      settings.yaml  all that changes, as `set` of a policy for `kubetide test`
      trials.csv     one row per tried combination
      what-if/       the page of `kubetide what-if` on the first evaluation run
      cells/         the result of each run, for --resume

    Exits with 0 if the result holds on the evaluation runs, else with 1.

    \b
    Examples:
      kubetide tune web-shop --knob hpa/storefront.target=50:80 --knob expander=least-waste,least-cost
      kubetide tune my-shop.yaml --knob hpa/web.min=2:10 --keep "sloMinutes <= 3" --keep "evictions <= now"
      kubetide tune my-shop.yaml --knob hpa/web.target=50:80 \\
          --train service/web.load.multiplier=1,1.2 --judge service/web.load.multiplier=1.1,1.4
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.tune_results import show, write
    from kubetide.experiments.capture.score import error_bar
    from kubetide.experiments.sweeps.grid import read_axes
    from kubetide.experiments.sweeps.results import QUANTITIES
    from kubetide.experiments.tuning.goal import read_constraint
    from kubetide.experiments.tuning.knobs import read_knobs
    from kubetide.experiments.tuning.trials import Conditions, check_knob, tune
    from kubetide.simulate.outcome.observe import shown_name
    from kubetide.simulate.scenarios.scenario import load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path

    if minimize not in QUANTITIES:
        raise click.UsageError(f"--minimize {minimize}: there are {', '.join(QUANTITIES)}")
    scenario = scenario_path(scenario)
    loaded = load_scenario(scenario)
    services = [shown_name(service.namespace, service.title) for service in loaded.services]
    constraints = [
        read_constraint(text, services, [group.name for group in loaded.node_groups])
        # Without services no SLO minute can be lost, and the cheapest result would be to run nothing.
        for text in keeps or (f"{'sloMinutes' if services else 'pendingPodMinutes'} <= now",)
    ]
    turned = read_knobs(knobs)
    for knob in turned:
        check_knob(scenario, loaded, knob)
    days = read_axes(train), read_axes(judge or train)
    store = cells_in(out, resume=resume)
    with resumable(), workers_for(dask, jobs, 1024) as workers, cells_bar(loaded.name, 1) as bar:
        training, evaluation = (
            Conditions(
                scenario,
                loaded,
                axes,
                range(first, first + seeds),
                workers=workers,
                store=store,
                done=lambda: bar.update(1),
            )
            for axes, first in zip(days, (1, seeds + 1), strict=True)
        )
        bar.length = (trials + 1) * len(training) + 2 * len(evaluation)
        found = tune(
            training, evaluation, turned, minimize=minimize, constraints=constraints, trials=trials, seed=seed
        )
    write(out, found, turned, minimize, constraints, scenario, evaluation.scenarios[0], seeds + 1)
    show(loaded.name, found, turned, minimize, constraints, out)
    if measured_error := error_bar(scenario):
        click.echo(f"\n{measured_error}")
    if found.best is None or found.error or found.broken(constraints):
        sys.exit(FAILED)

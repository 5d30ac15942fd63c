"""``kubetide what-if``: a scenario as it is and with changes, side by side."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.completing import complete_scenario
from kubetide.cli.common.exits import FAILED


@click.command("what-if")
@click.argument("scenario", type=click.Path(path_type=Path), shell_complete=complete_scenario)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="What to change: a flag, group/NAME.FIELD, service/NAME.FIELD, KIND/[NAMESPACE/]NAME.FIELD; may be repeated.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of objects to merge into those of the manifests, or to add; may be repeated.",
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of everything random, in both runs.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/what-if"),
    show_default=True,
    help="Folder for the page and for both runs.",
)
def command(scenario: Path, sets: tuple[str, ...], patches: tuple[Path, ...], seed: int, out: Path) -> None:
    """Run SCENARIO unchanged and with changes, on one seed, and print both side by side.

    SCENARIO is a file or the name of a shipped example. Both runs are the loops of production on the embedded
    cluster, over the same time: --set start=... and duration=... hold for both. Writes into --out:

    \b
      what-if.html   both runs under one cursor, their figures, and the first decision that differs
      as-it-is/      report, summary, timeline and records of the unchanged scenario
      changed/       the same for the scenario with the changes

    \b
    Examples:
      kubetide what-if web-shop --set expander=least-cost
      kubetide what-if web-shop --set hpa/storefront.target=75 --set group/general.max=20
      kubetide what-if web-shop --set deploy/cart.spec.replicas=4 --set scheduler=mostAllocated
      kubetide what-if my-shop.yaml --patch vpa.yaml
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.comparison import PAGE, folders_in, run_both
    from kubetide.cli.common.offered_commands import commands_with_folder
    from kubetide.cli.common.output import tell_broken
    from kubetide.experiments.capture.score import error_bar
    from kubetide.experiments.changes import TIMES, named_in, with_changes
    from kubetide.experiments.figures import comparison_table, figures
    from kubetide.experiments.page import SIDES
    from kubetide.simulate.outcome.decisions import decision_line, time_of_day
    from kubetide.simulate.outcome.table import aligned, printable
    from kubetide.simulate.scenarios.scenario import load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path
    from kubetide.simulate.scenarios.unserved import unserved_in

    if not sets and not patches:
        raise click.UsageError("nothing is changed: name what to change with --set or --patch")
    scenario = scenario_path(scenario)
    of_both = [one for one in sets if named_in(one) in TIMES]
    loaded = load_scenario(scenario)
    if of_both:
        loaded = with_changes(scenario, loaded, sets=of_both, patches=())
    changed = with_changes(scenario, loaded, sets=sets, patches=patches)
    if len(of_both) == len(sets) and not patches:
        raise click.UsageError(
            f"both runs have {' and '.join(of_both)}, as they are compared over the same time: "
            "name what else to change"
        )
    changes = [*(one for one in sets if one not in of_both), *(f"patch {path.name}" for path in patches)]
    before, after, differs = run_both(
        (loaded, changed), base=scenario.parent, out=out, seed=seed, changes=changes
    )
    click.echo(f"{printable(loaded.name)}   what if {', '.join(map(printable, changes))}\n")
    if of_both:
        click.echo(f"both runs have {', '.join(map(printable, of_both))}\n")
    click.echo(aligned(comparison_table(figures(before.summary, after.summary))))
    notices = [
        (*unserved_in(one, scenario.parent), *result.summary.notices)
        for one, result in ((loaded, before), (changed, after))
    ]
    for title, ours, theirs, folder in zip(SIDES, notices, reversed(notices), folders_in(out), strict=True):
        for notice in ours:
            if notice not in theirs:
                click.echo(f"\n{title}: {commands_with_folder(folder, printable(notice))}")
    if measured_error := error_bar(scenario):
        click.echo(f"\n{printable(measured_error)}")
    if differs is None:
        click.echo("\nboth runs took the same decisions")
    else:
        click.echo(f"\nthe first decision that differs, at {time_of_day(differs.at)}:")
        for title, side in zip(SIDES, (differs.before, differs.after), strict=True):
            for mark in side.decided:
                click.echo(f"  {title}: {decision_line(mark)}")
            if not side.decided:
                said = "; ".join(map(printable, side.instead))
                click.echo(f"  {title}: decided nothing{f': {said}' if said else ''}")
    click.echo(f"\npage     {out / PAGE}")
    click.echo(
        f"runs     {', '.join(map(str, folders_in(out)))}, for `kubetide explain` and `kubetide replay`"
    )
    broken = [tell_broken(result) for result in (before, after)]
    sys.exit(FAILED if any(broken) else 0)

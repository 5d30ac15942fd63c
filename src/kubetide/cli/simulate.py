"""``kubetide simulate``: a scenario in virtual time."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.completing import complete_scenario
from kubetide.cli.common.exits import FAILED, INTERRUPTED, STUCK


@click.command("simulate")
@click.argument("scenario", type=click.Path(path_type=Path), shell_complete=complete_scenario)
@click.option(
    "--trace", type=click.Path(path_type=Path, dir_okay=False), help="Drive the first service with this file."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything random.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out"),
    show_default=True,
    help="Folder for the report, the summary and the decision records.",
)
@click.option("--strict", is_flag=True, help="Exit with 3 if something could not scale (see the notices).")
@click.option(
    "--variants", is_flag=True, help="Play each of the scenario's variants, and print one line per variant."
)
def command(scenario: Path, trace: Path | None, seed: int, out: Path, strict: bool, variants: bool) -> None:
    """Run SCENARIO, a file or the name of a shipped example, in virtual time: a day takes seconds.

    The loops are the ones that run in production; the cluster, the cloud and the load are embedded.
    The same scenario and seed give the same bytes. Prints a summary and writes into --out:

    \b
      report.html    the dashboard of the run, in one file
      summary.json   the numbers of the summary
      timeline.json  what happened, step by step
      records/       every decision, for `kubetide explain` and `kubetide replay`

    \b
    Examples:
      kubetide simulate web-shop
      kubetide simulate my-shop.yaml --out monday --strict
      kubetide simulate worldcup98 --trace requests.csv.gz --out june
      kubetide simulate vpa-day --variants --out compared
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.output import finish, tell_broken, tell_stuck, write_results
    from kubetide.cli.common.progress import simulated
    from kubetide.runtime.recording.folder import REPORT
    from kubetide.simulate.outcome.table import printable
    from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path
    from kubetide.simulate.scenarios.unserved import unserved_in
    from kubetide.simulate.variants import variant_of, variants_table
    from kubetide.units.time import Instant, format_rfc3339

    scenario = scenario_path(scenario)
    loaded = load_scenario(scenario, trace=trace)
    if variants:
        if not loaded.variants:
            raise ScenarioError(f"{scenario}: variants: there are none; name some, or leave --variants out")
        played = {}
        for name in loaded.variants:
            variant = variant_of(loaded, name)
            played[name] = simulated(variant, base=scenario.parent, out=out / name, seed=seed, label=name)
            write_results(played[name], out / name)
            if played[name].interrupted:
                sys.exit(INTERRUPTED)
        click.echo(variants_table({name: result.summary for name, result in played.items()}))
        click.echo(f"\nreports  {out}/*/{REPORT}")
        broken = [tell_broken(result) for result in played.values()]
        stuck = [tell_stuck(result, name, out / name) for name, result in played.items()] if strict else []
        sys.exit(FAILED if any(broken) else STUCK if any(stuck) else 0)
    for notice in unserved_in(loaded, scenario.parent):
        click.echo(f"kubetide: {printable(notice)}", err=True)
    result = simulated(loaded, base=scenario.parent, out=out, seed=seed, label=loaded.name)
    finish(result, out, strict=strict)
    if result.interrupted:
        summary = result.summary
        reached = format_rfc3339(Instant(summary.start + round(summary.hours * 3600e9)))
        click.echo(
            f"interrupted at {reached[11:16]} of the run ({reached[:10]}); the summary and the files end there",
            err=True,
        )
        sys.exit(INTERRUPTED)

"""``kubetide test``: policies under test."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.exits import FAILED, USAGE


@click.command("test")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result of each expectation as JUnit XML.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/test"),
    show_default=True,
    help="Folder for reports and records of the runs.",
)
def command(paths: tuple[Path, ...], junit: Path | None, out: Path) -> None:
    """Test policies: run the scenario of each file in PATHS, and check its expectations.

    A file names a scenario, changes of it, seeds, and expectations:

    \b
      scenario: web-shop
      set: {expander: least-cost}
      seeds: [1, 2]
      expect:
        - sloMinutes <= 5
        - cost <= 1.05 x baseline
        - never(pending > 50 for 5m)
        - always(replicas(cart) >= 2 between 08:30 and 18:00 Europe/Berlin)
        - no node deleted within 4m of its creation

    A failure is printed with its time, its amount, and the decisions at that time. Exits with 0 if all
    expectations hold, 1 if one does not, 2 if a policy cannot be read.

    \b
    Examples:
      kubetide test policies/
      kubetide test policies/checkout.yaml --junit results.xml
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.output import write_results
    from kubetide.cli.common.progress import simulated
    from kubetide.experiments.policies import (
        Case,
        Finding,
        PolicyError,
        evaluate,
        junit_xml,
        load_policy,
        policy_files,
    )
    from kubetide.runtime.recording.folder import write_bytes_whole
    from kubetide.simulate.outcome.table import printable
    from kubetide.simulate.run import RunResult
    from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError
    from kubetide.simulate.scenarios.shipped import scenario_path
    from kubetide.units.time import format_rfc3339

    def run(scenario: Scenario, base: Path, folder: Path, seed: int) -> RunResult:
        result = simulated(scenario, base=base, out=folder, seed=seed, label=str(folder))
        write_results(result, folder)
        if result.interrupted:
            raise click.Abort
        return result

    def failure_of(finding: Finding, folder: Path) -> str:
        lines = [finding.text]
        if finding.at is not None:
            lines.append(f"at {format_rfc3339(finding.at)}")
        if finding.decision:
            lines.append(f"decided before: {finding.decision}")
        return "\n".join([*lines, f"records: {folder}"])

    try:
        policies = [load_policy(path, scenario_path) for path in policy_files(paths)]
    except (PolicyError, ScenarioError) as error:
        click.echo(f"kubetide: {error}", err=True)
        sys.exit(USAGE)
    cases: list[Case] = []
    for number, policy in enumerate(policies, 1):
        for seed in policy.seeds:
            suite = f"{policy.path} seed {seed}"
            folder = out / f"{number:02d}-{policy.path.stem}" / f"seed-{seed}"
            result = run(policy.scenario, policy.base, folder, seed)
            baseline = None
            if any(one.needs_baseline for one in policy.expectations):
                baseline = run(policy.baseline, policy.base, folder / "baseline", seed).summary
            click.echo(printable(suite))
            for expectation in policy.expectations:
                finding = evaluate(expectation, result.timeline, result.summary, baseline)
                failure = "" if finding.held else failure_of(finding, folder)
                cases.append(Case(suite, expectation.text, failure))
                click.echo(f"  {'ok  ' if finding.held else 'FAIL'}  {expectation.text}")
                click.echo("\n".join(f"          {line}" for line in (failure or finding.text).splitlines()))
            for violation in result.violations:
                cases.append(Case(suite, "no invariant is broken", violation))
                click.echo(f"  FAIL  no invariant is broken\n          {violation}")
    failed = sum(bool(case.failure) for case in cases)
    click.echo(f"\n{len(cases) - failed} held, {failed} failed")
    if junit is not None:
        try:
            junit.parent.mkdir(parents=True, exist_ok=True)
            write_bytes_whole(junit, junit_xml(cases))
        except OSError as error:
            raise PolicyError(
                f"--junit {junit}: cannot be written: {error.strerror}; choose another file"
            ) from error
    sys.exit(FAILED if failed else 0)

"""``kubetide capture``: a scenario from the records of a run."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec
from click.core import ParameterSource

from kubetide.cli.common.exits import FAILED

if TYPE_CHECKING:
    from kubetide.experiments.capture.observed import Seen
    from kubetide.experiments.capture.scenario import Captured
    from kubetide.experiments.capture.score import Score
    from kubetide.simulate.scenarios.scenario import Scenario

_SCENARIO: Final = "scenario.yaml"


@click.command("capture")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/captured"),
    show_default=True,
    help="Folder for the scenario and its traces.",
)
@click.option("--name", default="captured", show_default=True, help="Name of the scenario.")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=VALUE",
    help="A value that the records do not show, named as for `what-if`: a flag, group/NAME.FIELD, KIND/NAME.FIELD.",
)
@click.option("--no-score", is_flag=True, help="Do not simulate the scenario to see how near it comes.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of that simulation.")
@click.option("--prometheus-url", default="", metavar="URL", help="Where Prometheus is.")
@click.option(
    "--since",
    default="24h",
    show_default=True,
    metavar="TIME",
    help="Start of the time that Prometheus is asked for: RFC 3339, or a duration before the records, else before --until.",
)
@click.option(
    "--until",
    default="",
    metavar="TIME",
    help="End of that time, if there are no records; RFC 3339.  [default: now]",
)
@click.option(
    "--step",
    default="",
    metavar="DURATION",
    help="Time between two samples of Prometheus.  [default: that of its samples, 15s or more]",
)
@click.option(
    "--prometheus-token-file", default="", metavar="FILE", help="File with the bearer token for Prometheus."
)
@click.option("--prometheus-user", default="", metavar="NAME", help="User for basic authentication.")
@click.option("--prometheus-password-file", default="", metavar="FILE", help="File with the user's password.")
@click.option(
    "--prometheus-ca-file", default="", metavar="FILE", help="Certificates of the authorities to trust (PEM)."
)
@click.option("--prometheus-insecure", is_flag=True, help="Trust any certificate.")
def command(
    folder: Path | None,
    out: Path,
    name: str,
    sets: tuple[str, ...],
    no_score: bool,
    seed: int,
    since: str,
    until: str,
    step: str,
    **prometheus: str | bool,
) -> None:
    """Make a scenario from the records in FOLDER: workloads, their load, node groups.

    FOLDER is what `kubetide run`, also in advice mode, `up` or `simulate` wrote. The scenario has the workloads, HPAs,
    VPAs, time tables and disruption budgets of the beginning, node groups with prices and measured boot times, and for each HPA's target a
    load from the CPU usage of its pods. With --prometheus-url, Prometheus covers the time before the records, or without
    FOLDER everything: by the series of kube-state-metrics and cAdvisor. Assumptions and
    gaps are printed and written to the scenario. Then the scenario is simulated and compared with the real run: the score card. Writes
    into --out:

    \b
      scenario.yaml  for `kubetide simulate`, `what-if`, `sweep`, `tune` and `test`
      *.csv          the load of each service
      score.json     the score card, which those commands show beside what they compare

    \b
    Examples:
      kubetide capture kubetide-out --out my-shop
      kubetide capture /var/lib/kubetide --name monday --out monday
      kubetide capture kubetide-out --prometheus-url http://prometheus:9090 --since 7d --out my-week
      kubetide capture --prometheus-url http://prometheus:9090 --set expander=least-waste --out my-day
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.progress import simulated
    from kubetide.experiments.capture.observed import seen_in
    from kubetide.experiments.capture.scenario import captured
    from kubetide.experiments.capture.score import CARD, scores
    from kubetide.runtime.configuration.prometheus_settings import PrometheusSettings
    from kubetide.runtime.recording.folder import write_bytes_whole
    from kubetide.simulate.outcome.table import printable

    if not name.strip():
        raise click.UsageError("--name is empty; give the scenario a name")
    settings = PrometheusSettings(**prometheus)  # type: ignore[arg-type]
    if folder is None and not settings.prometheus_url:
        raise click.UsageError("name a FOLDER of records, or --prometheus-url, or both")
    if not settings.prometheus_url:
        _refuse_given("since", "until", "step", *prometheus)
    seen = _read(folder) if folder is not None else None
    if settings.prometheus_url:
        from kubetide.experiments.capture.prometheus.access import seen_by_prometheus

        seen = seen_by_prometheus(
            settings,
            (since, until, step),
            records=seen,
            tell=lambda text: click.echo(f"kubetide: {text}", err=True),
        )
    assert seen is not None
    found = captured(name, seen)
    loaded = _write(found, out, sets)
    click.echo(f"{printable(name)}   {found.value['start']}, {found.value['duration']}\n")
    for note in found.notes:
        click.echo(f"- {printable(note)}")
    click.echo(f"\nscenario {out / _SCENARIO}")
    if no_score:
        return
    with tempfile.TemporaryDirectory() as made:
        result = simulated(loaded, base=out, out=Path(made), seed=seed, label=name)
        if result.interrupted:
            raise click.Abort
        again = seen_in(Path(made))
    card = scores(seen, again)
    write_bytes_whole(out / CARD, msgspec.json.encode(card) + b"\n")
    _print_card(card)
    for violation in result.violations:
        click.echo(f"invariant broken: {violation}", err=True)
    if result.violations:
        sys.exit(FAILED)


def _read(folder: Path) -> Seen:
    """Return what the records of a folder show; the bar shows how far it is. Raises: CaptureError, RecordError."""
    from kubetide.experiments.capture.observed import bytes_of, seen_in

    if not sys.stderr.isatty():
        return seen_in(folder)
    with click.progressbar(length=bytes_of(folder), label=str(folder), file=sys.stderr) as bar:
        return seen_in(folder, progress=bar.update)


def _write(found: Captured, out: Path, sets: tuple[str, ...]) -> Scenario:
    """Write the scenario, with the changes of ``--set``, and its traces; return it as a run reads it. Raises CaptureError."""
    from kubetide.experiments.capture.errors import CaptureError
    from kubetide.experiments.capture.score import CARD
    from kubetide.experiments.changes import with_changes
    from kubetide.objects.nulls import without_nulls
    from kubetide.runtime.recording.folder import write_bytes_whole
    from kubetide.simulate.scenarios.scenario import load_scenario

    path = out / _SCENARIO
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / CARD).unlink(missing_ok=True)
        for file, values in found.traces.items():
            text = "".join(f"{value:g}\n" for value in values)
            write_bytes_whole(out / file, text.encode())
        write_bytes_whole(path, found.text().encode())
    except OSError as error:
        raise CaptureError(f"cannot write under {out}: {error.strerror}; choose another --out") from error
    loaded = load_scenario(path)
    if sets:
        loaded = with_changes(path, loaded, sets=sets, patches=())
        value = without_nulls(msgspec.json.decode(msgspec.json.encode(loaded)))
        changed = msgspec.structs.replace(found, value=value)
        write_bytes_whole(path, changed.text().encode())
    return loaded


def _print_card(card: Sequence[Score]) -> None:
    from kubetide.simulate.outcome.table import Table, aligned, decimal, percent, printable

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
    click.echo(
        "\nnear: within 1 replica; within a tenth of a recommendation; the same number of nodes within one tick's time"
    )


def _refuse_given(*options: str) -> None:
    """Raise UsageError for one of these options on the command line: without Prometheus they have no effect."""
    context = click.get_current_context()
    for name in options:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and context.params[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} goes with --prometheus-url")

"""``kubetide up``: the embedded cluster at a speed that the eye can follow."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import click

import kubetide
from kubetide.cli.common.completing import complete_scenario
from kubetide.simulate.outcome.timeline import Mark, Timeline
from kubetide.simulate.scenarios.scenario import Scenario
from kubetide.simulate.scenarios.spec import MOST_SPEED, is_speed
from kubetide.units.time import Instant

if TYPE_CHECKING:
    from kubetide.simulate.persisted import PersistedRun
    from kubetide.simulate.run import Beside
    from kubetide.simulate.serve import Address

SHIPPED = Path(kubetide.__file__).parent / "examples" / "web-shop.yaml"


class View(Protocol):
    """What shows a run while it goes on."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def sample(self, timeline: Timeline) -> None:
        """Take the state after a sampling step."""

    def mark(self, mark: Mark) -> None:
        """Take a decision."""

    def warn(self, text: str) -> None:
        """Take a sentence that a person must see."""


def _warm_up(scenario: Scenario, speed: float) -> str:
    """Say how long nothing is decided at first, where a person would wonder."""
    from kubetide.units.time import Duration, format_duration, parse_duration, seconds

    takes = Duration(round(parse_duration(scenario.warm_up) / speed))
    return f", after {format_duration(takes)} of warm-up" if takes >= seconds(5) else ""


class PlainView:
    """One line a decision, for a file, a pipe or a terminal without the live view."""

    def __init__(self, scenario: Scenario, speed: float) -> None:
        self._read = True
        self.heading = (
            f"{scenario.name}: from {scenario.start} at {speed:g} times real time{_warm_up(scenario, speed)}; "
            "Ctrl-C ends it"
        )

    def __enter__(self) -> Self:
        click.echo(self.heading)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._read:
            click.echo()

    def sample(self, timeline: Timeline) -> None:
        """Show nothing: decisions speak."""

    def mark(self, mark: Mark) -> None:
        """Print the decision; when nobody reads any more, or the disk is full, end the run as Ctrl-C does."""
        from kubetide.simulate.outcome.decisions import decision_line

        if self._read:
            try:
                click.echo(decision_line(mark))
            except OSError:
                self._read = False
                signal.raise_signal(signal.SIGINT)

    def warn(self, text: str) -> None:
        """Print it on standard error."""
        click.echo(f"kubetide: {text}", err=True)


def _checked_speed(_context: click.Context, _option: click.Parameter, speed: float | None) -> float | None:
    if speed is not None and not is_speed(speed):
        raise click.BadParameter(f"{speed:g} is not a number greater than 0 and at most {MOST_SPEED:,}")
    return speed


@click.command("up")
@click.argument("scenario", type=click.Path(path_type=Path), required=False, shell_complete=complete_scenario)
@click.option(
    "--speed", type=float, callback=_checked_speed, help="Multiple of real time.  [default: the scenario's]"
)
@click.option(
    "--until", metavar="TIME", help="End at 13:00, 2026-03-02T13:00:00Z, 90m after the start, or never."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of everything random.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out"),
    show_default=True,
    help="Folder for the report, the summary and the decision records.",
)
@click.option(
    "--serve",
    metavar="[ADDR]",
    is_flag=False,
    flag_value="127.0.0.1:0",
    help="Serve the cluster to kubectl on HOST:PORT, by default on a free port of this machine only.",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    help="Store the cluster in this folder, and continue from there the next time.",
)
@click.option(
    "--ui/--no-ui", default=None, help="Show the run in a browser as well.  [default: on a terminal]"
)
@click.option("--strict", is_flag=True, help="Exit with 3 if something could not scale (see the notices).")
def command(
    scenario: Path | None,
    speed: float | None,
    until: str | None,
    seed: int,
    out: Path,
    serve: str | None,
    state: Path | None,
    ui: bool | None,
    strict: bool,
) -> None:
    """Run SCENARIO, a file or the name of a shipped example, live: an embedded cluster under load, the loops at work, the reason for every step.

    Without SCENARIO it plays the shipped web shop: an hour before a burst, pods and nodes that rise
    with it and fall after it, within two minutes. No cluster is needed and no kubeconfig is read.

    On a terminal it shows a live view (with: pip install 'rich>=14'); elsewhere it
    prints one line per decision. Ctrl-C or SIGTERM ends the run early. Either way it ends with the summary and
    leaves the report and the decision records in --out.

    With --ui the dashboard (`kubetide ui`) runs beside it, and its address is printed.

    With --serve (with: pip install 'cryptography>=45') the cluster speaks the Kubernetes API over
    HTTPS; the kubeconfig for it lies in --out while the run lasts.

    Load and faults of a served run can be changed while it runs: `kubetide load`, `kubetide fault`.

    With --state every write to the cluster and every machine is stored in a folder: a run that ended
    in any way, even by kill -9, resumes from there with the same command.

    \b
    Examples:
      kubetide up
      kubetide up --speed 20 --until 12:30
      kubetide up my-shop.yaml --until 45m --out my-run
      kubetide up | grep nodes
      kubetide up my-shop.yaml --speed 1 --serve
      kubetide up playground --serve --ui
      kubetide up my-shop.yaml --state my-cluster
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.beside import dashboard
    from kubetide.cli.common.output import finish
    from kubetide.embedded.apiserver.admission.http import HttpCaller
    from kubetide.runtime.process import ended_by_signals
    from kubetide.runtime.recording.folder import claimed
    from kubetide.simulate.run import LiveRun
    from kubetide.simulate.scenarios.scenario import NOW, load_scenario, load_unchecked
    from kubetide.simulate.scenarios.shipped import scenario_path
    from kubetide.simulate.scenarios.show import end_of_show, shown_part

    path = SHIPPED if scenario is None else scenario_path(scenario)
    if state is not None and load_unchecked(path).start == NOW:
        raise click.UsageError(
            f"--state: {path} starts now, so no start could go on from another; write a time"
        )
    loaded = shown_part(load_scenario(path))
    end = end_of_show(loaded, until)
    chosen = loaded.show.speed if speed is None else speed
    address = None if serve is None else _address(serve)
    # From here on the terminal may be the view's: it is given back, whatever ends the run.
    with claimed(out), ended_by_signals():
        with _persisted(state, loaded, end) as persisted:
            view = _view()(loaded, chosen, end)
            run = LiveRun(
                loaded,
                base=path.parent,
                out=out,
                seed=seed,
                speed=chosen,
                until=end,
                warn=view.warn,
                on_sample=view.sample,
                on_mark=view.mark,
                beside=None if address is None else _serving(address, out, view),
                persisted=persisted,
                webhooks=HttpCaller(),
            )
            try:
                with view, ExitStack() as beside:
                    if persisted is not None and persisted.cut:
                        view.warn(persisted.cut)
                    if sys.stdout.isatty() if ui is None else ui:
                        beside.enter_context(dashboard(out, view.warn))
                    result = run.run()
            except KeyboardInterrupt:
                if run.has_begun:
                    raise
                result = run.unplayed()
        finish(result, out, strict=strict)


def _persisted(
    folder: Path | None, scenario: Scenario, end: Instant
) -> AbstractContextManager[PersistedRun | None]:
    """Open the folder of --state. Raises JournalError, ScenarioError."""
    if folder is None:
        return nullcontext()
    from kubetide.simulate.persisted import PersistedRun

    return PersistedRun(folder, scenario.name, end)


def _address(text: str) -> Address:
    """Read --serve. Raises ServeError; UsageError where the extra is missing."""
    try:
        from kubetide.simulate.serve import parse_address
    except ImportError as error:
        raise click.UsageError("--serve needs certificates: pip install 'cryptography>=45'") from error
    return parse_address(text)


def _serving(address: Address, out: Path, view: View) -> Beside:
    from kubetide.simulate.serve import Serving

    return Serving(address, out / "kubeconfig", view.warn).beside


def _view() -> Callable[[Scenario, float, Instant], View]:
    """Return the live view where a terminal can show it, else plain lines."""
    if sys.stdout.isatty():
        try:
            from kubetide.cli.screens.live import LiveView, can_show
        except ImportError:
            click.echo("kubetide: plain lines; for the live view: pip install 'rich>=14'", err=True)
        else:
            if can_show():
                return LiveView
    return lambda scenario, speed, _: PlainView(scenario, speed)

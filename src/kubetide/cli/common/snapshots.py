"""What a command looks at that reads a cluster or a scenario once: its options, and the snapshot that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kubetide.doctor import Snapshot


def snapshot_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--config``, ``--after``, ``--seed`` and the arguments to a command."""
    options = (
        click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCENARIO] [--name=value]..."),
        click.option("--seed", type=int, default=1, show_default=True, help="Seed of the scenario."),
        click.option(
            "--after",
            default="15m",
            show_default=True,
            metavar="DURATION",
            help="How long a scenario runs before the snapshot.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File of settings, as for `run`.",
        ),
    )
    for option in options:
        command = option(command)
    return command


def snapshot_of(arguments: tuple[str, ...], config: Path | None, after: str, seed: int) -> Snapshot:
    """Return the snapshot of the cluster that settings name, or of the scenario that comes first.

    Args:
        arguments: A scenario, or settings as flags.
        config: File of settings.
        after: How long a scenario runs before it is read, as text.
        seed: Of a scenario.
    """
    from kubetide.cli.run import configuration
    from kubetide.doctor.subjects import snapshot_of_cluster, snapshot_of_scenario
    from kubetide.simulate.scenarios.scenario import load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path
    from kubetide.units.time import parse_duration

    def warn(text: str) -> None:
        click.echo(f"kubetide: {text}", err=True)

    if not arguments or arguments[0].startswith("-"):
        return snapshot_of_cluster(configuration(config, list(arguments)), warn)
    refuse_settings(arguments)
    try:
        played = parse_duration(after)
    except ValueError as error:
        raise click.BadParameter(
            f"{after!r} is no duration; write 30m or 2h", param_hint="--after"
        ) from error
    if played < 0:
        raise click.BadParameter(f"{after} is negative; write 30m or 2h", param_hint="--after")
    path = scenario_path(Path(arguments[0]))
    return snapshot_of_scenario(
        load_scenario(path),
        base=path.parent,
        seed=seed,
        played=played,
        warn=warn,
    )


def refuse_settings(arguments: tuple[str, ...]) -> None:
    """Raise UsageError where something follows a scenario."""
    if len(arguments) > 1:
        raise click.UsageError(
            f"a scenario takes no {arguments[1]}: its own file has its settings, and those of `kubetide run` are for a "
            "cluster"
        )

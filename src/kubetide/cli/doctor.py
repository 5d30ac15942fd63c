"""``kubetide doctor``: what keeps a cluster from scaling well."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetide.cli.common.exits import FAILED
from kubetide.cli.common.structured import TABLE, output_option, structured
from kubetide.cli.run import OPEN

if TYPE_CHECKING:
    from kubetide.doctor import Snapshot


@click.command("doctor", context_settings=OPEN)
@output_option()
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings, as of `run`."
)
@click.option(
    "--after",
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="How long a scenario runs before it is read.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of a scenario.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCENARIO] [--name=value]...")
def command(output: str, config: Path | None, after: str, seed: int, arguments: tuple[str, ...]) -> None:
    """Say what keeps a cluster from scaling well: the object, why it matters, and the fix.

    Looks at the cluster of your kubeconfig and only reads. With SCENARIO, a file or the name of a shipped
    example, it looks at the embedded cluster of that scenario when it has run for --after in virtual time.

    Settings are those of `kubetide run`: --kubeconfig, --context, and for node groups with their prices and
    templates --controllers=nodes --cloud-provider=NAME. Without a cloud, only the groups in the status ConfigMap
    of the node autoscaler are known.

    Exit status: 0 where nothing critical and no warning was found, 1 where there is, or where it failed.

    \b
    Examples:
      kubetide doctor
      kubetide doctor --context=staging -o json
      kubetide doctor --controllers=nodes --cloud-provider=aws
      kubetide doctor web-shop
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.doctor import diagnose
    from kubetide.doctor.text import findings_text

    findings = diagnose(snapshot_of(arguments, config, after, seed))
    click.echo(findings_text(findings) if output == TABLE else structured({"findings": findings}, output))
    if any(one.severity != "info" for one in findings):
        sys.exit(FAILED)


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

    if not arguments or arguments[0].startswith("-"):
        return snapshot_of_cluster(configuration(config, list(arguments)))
    if len(arguments) > 1:
        raise click.UsageError(f"{arguments[1]} is of a cluster; a scenario has its own settings")
    try:
        played = parse_duration(after)
    except ValueError as error:
        raise click.BadParameter(
            f"{after!r} is no duration; write 30m or 2h", param_hint="--after"
        ) from error
    path = scenario_path(Path(arguments[0]))
    return snapshot_of_scenario(
        load_scenario(path),
        base=path.parent,
        seed=seed,
        played=played,
        warn=lambda text: click.echo(f"kubetide: {text}", err=True),
    )

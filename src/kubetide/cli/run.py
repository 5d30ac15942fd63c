"""``kubetide run``: the loops on a real cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubetide.cli.common.completing import WithSettings

if TYPE_CHECKING:
    from kubetide.runtime.configuration.config import RunConfig

OPEN = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Flags of upstream are read by their own names, so click must let them through."""


def configuration(path: Path | None, arguments: list[str]) -> RunConfig:
    """Put file, environment and flags together. Raises ConfigError."""
    from kubetide.runtime.configuration.config import environment_values, flag_values, make_config, read_file

    named = path or (Path(os.environ["KUBETIDE_CONFIG"]) if os.environ.get("KUBETIDE_CONFIG") else None)
    layers = [] if named is None else [(str(named), read_file(named))]
    return make_config(
        [*layers, ("environment", environment_values(os.environ)), ("--", flag_values(arguments))]
    )


@click.command("run", cls=WithSettings, context_settings=OPEN)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings (YAML).")
@click.pass_context
def command(context: click.Context, config: Path | None) -> None:
    """Run the loops on the cluster of your kubeconfig: print what they would do, and why.

    Nothing is written to the cluster or the cloud unless --act is given. Each decision is one line;
    `kubetide explain` answers questions about it from the records in --out, while it runs too.

    \b
    Settings, as flags (--name=value), in the file (name: value), or as KUBETIDE_NAME=value:
      --act                     carry decisions out
      --controllers=LIST        horizontal, nodes, recommender, updater, admission; vertical for the last three  [horizontal]
      --kubeconfig=PATH         [KUBECONFIG, then ~/.kube/config, then the pod's own account]
      --context=NAME            of the kubeconfig  [its current one]
      --cloud-provider=NAME     provider of the node groups; `labels` for advice on any cluster
      --cloud-config=TEXT       the provider's configuration
      --nodes=MIN:MAX:GROUP     bounds of a group, for `labels`
      --leader-elect=BOOL       one replica acts at a time  [true]
      --address=HOST:PORT       health and metrics; empty for none  [127.0.0.1:8085]
      --log-format=FORMAT       console or json  [console]
      --out=FOLDER              decision records  [kubetide-out]
    and all flags of docs/settings.md under upstream's names; `kubetide config check` shows the result.

    \b
    Examples:
      kubetide run
      kubetide run --context staging --horizontal-pod-autoscaler-sync-period=30s
      kubetide run --config kubetide.yaml --act
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.log import log_of
    from kubetide.runtime.production import run_service
    from kubetide.runtime.recording.folder import claimed

    settings = configuration(config, context.args)
    out = Path(settings.run.out)
    with claimed(out):
        run_service(settings, out, log_of(settings.run.log_format))

"""``kubetide doctor``: what keeps a cluster from scaling well."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.exits import FAILED
from kubetide.cli.common.snapshots import snapshot_of, snapshot_options
from kubetide.cli.common.structured import TABLE, output_option, structured
from kubetide.cli.run import OPEN


@click.command("doctor", context_settings=OPEN)
@output_option()
@snapshot_options
def command(output: str, config: Path | None, after: str, seed: int, arguments: tuple[str, ...]) -> None:
    """Report what keeps a cluster from scaling well: the object, why it matters, and the fix.

    Reads the cluster of your kubeconfig and writes nothing. With SCENARIO, a file or the name of a shipped
    example, it reads the embedded cluster of that scenario after --after of virtual time.

    Settings are those of `kubetide run`: --kubeconfig, --context, and for node groups with their prices and
    templates --controllers=nodes --cloud-provider=NAME. Without a cloud, only the groups in the status ConfigMap
    of the node autoscaler are known.

    Exit status: 0 without critical findings and warnings, 1 with any, or on failure.

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

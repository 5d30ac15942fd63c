"""``kubetide cloud``: clouds by themselves, without a loop."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.common.groups import Commands
from kubetide.cli.run import OPEN, configuration


@click.group("cloud", cls=Commands)
def command() -> None:
    """Work with a cloud provider, without a loop."""


@command.command("serve", context_settings=OPEN)
@click.argument("provider")
@click.option("--listen", default="127.0.0.1:8086", show_default=True, help="Where to listen, HOST:PORT.")
@click.option(
    "--cert", type=click.Path(path_type=Path, dir_okay=False), help="Certificate of this server (PEM)."
)
@click.option("--key", type=click.Path(path_type=Path, dir_okay=False), help="Its key, PEM.")
@click.option(
    "--cacert",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Authority that signs the clients' certificates (PEM).",
)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings (YAML).")
@click.pass_context
def serve(
    context: click.Context,
    provider: str,
    listen: str,
    cert: Path | None,
    key: Path | None,
    cacert: Path | None,
    config: Path | None,
) -> None:
    """Offer a provider to upstream's Cluster Autoscaler by the externalgrpc protocol.

    PROVIDER and the settings of the cloud are those of `kubetide run`. Whoever reaches the port may scale the groups:
    beyond loopback clients must show a certificate of --cacert.

    \b
    Examples:
      kubetide cloud serve aws --node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled
      kubetide cloud serve mycloud:factory --listen 0.0.0.0:8086 --cert tls.crt --key tls.key --cacert ca.crt
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.clouds.externalgrpc.config import certificates
    from kubetide.runtime.cloud_server import serve_cloud

    given = [one for one in (cert, key, cacert) if one is not None]
    if given and len(given) < 3:
        raise click.UsageError("--cert, --key and --cacert belong together; give all three or none")
    tls = certificates(str(cert), str(key), str(cacert)) if given else None
    settings = configuration(config, [*context.args, f"--cloud-provider={provider}"])
    serve_cloud(settings, listen, tls, say=click.echo)

"""``kubetide expander``: expanders by themselves, without a loop."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.common.groups import Commands


@click.group("expander", cls=Commands)
def command() -> None:
    """Work with expanders, without a loop."""


@command.command("serve")
@click.argument("chain", default="least-waste")
@click.option(
    "--listen", default="127.0.0.1:7000", show_default=True, help="Address to listen on, HOST:PORT."
)
@click.option(
    "--cert", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Server certificate, PEM."
)
@click.option(
    "--key", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Key of the certificate, PEM."
)
def serve(chain: str, listen: str, cert: Path | None, key: Path | None) -> None:
    """Offer a chain of expanders to upstream's Cluster Autoscaler by its gRPC protocol.

    CHAIN is what --expander takes: least-waste, most-pods, least-nodes, random, with commas between several. Upstream's
    side is --expander=grpc --grpc-expander-url=HOST:PORT, with --grpc-expander-cert where --cert is given here.

    \b
    Examples:
      kubetide expander serve least-nodes,least-waste
      kubetide expander serve most-pods --listen 0.0.0.0:7000 --cert tls.crt --key tls.key
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.runtime.expanders import certificate_of, serve_expander

    if (cert is None) != (key is None):
        raise click.UsageError("--cert and --key belong together; give both or none")
    pair = None if cert is None or key is None else certificate_of(cert, key)
    serve_expander(chain, listen, pair, say=click.echo)

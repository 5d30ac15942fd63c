"""External expanders: the client for ours, and our server for upstream's Cluster Autoscaler."""

from __future__ import annotations

import asyncio
import signal
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.registry import missing_package
from kubetide.nodes.expander import Context, ExpanderError, Option, expander_of, parse_expanders
from kubetide.nodes.expander.registry import RANDOM, asks_service
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import NodeGroup
from kubetide.ports.expander import ExpanderService, Offer
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling import Snapshot

SERVED = ("least-waste", "most-pods", "least-nodes", RANDOM)
"""Expanders that need no more than the protocol sends."""


def connected_expander(settings: Settings) -> ExpanderService | None:
    """Return the client of ``--grpc-expander-url`` if the chain uses it; else None.

    Raises: CloudConfigError for a certificate that cannot be read; CloudNotFound without grpcio.
    """
    if not asks_service(settings.expander):
        return None
    try:
        from kubetide.clouds.externalgrpc.expander.client import GrpcExpander  # noqa: PLC0415  # grpcio is an extra
    except ImportError as error:
        raise missing_package("--expander=grpc", "grpc") from error
    return GrpcExpander(settings.grpc_expander_url, settings.grpc_expander_cert)


def chosen_by(expander: str) -> Callable[[Sequence[Offer], Mapping[str, Node]], Sequence[str]]:
    """Return a function that chooses among offers by a chain of expanders; equally good ones stay.

    Raises: CloudConfigError for a chain that is invalid, and for an expander that needs more than the protocol sends.
    """
    try:
        names = parse_expanders(expander)
    except ExpanderError as error:
        why = str(error).removeprefix(f"--expander={expander}: ")
        raise CloudConfigError(f"expander serve {expander}: {why}") from error
    if unfit := [name for name in names if name not in SERVED]:
        raise CloudConfigError(
            f"expander serve: {unfit[0]} needs more than the protocol tells (prices, a ConfigMap, all groups at once); "
            f"give one or several of {', '.join(SERVED)}"
        )

    def choose(offers: Sequence[Offer], nodes: Mapping[str, Node]) -> Sequence[str]:
        left = [_option(offer, nodes.get(offer.group, Node())) for offer in offers]
        for name in names:
            if name == RANDOM or len(left) == 1:
                break
            left = expander_of(name)(left, Context())
        return [option.group.id for option in left]

    return choose


def certificate_of(certificate: Path, key: Path) -> tuple[bytes, bytes]:
    """Return what the files of our certificate and its key hold, PEM. Raises CloudConfigError for files that do not match."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # also ssl.SSLError
        raise CloudConfigError(
            f"--cert={certificate} --key={key}: no certificate with its key: {error}; give both as PEM files"
        ) from error
    return certificate.read_bytes(), key.read_bytes()


def _option(offer: Offer, node: Node) -> Option:
    template = Template(node=node, pods=(), origin="cloud", source="asked over gRPC", fresh=Snapshot())
    return Option(NodeGroup(id=offer.group), template, offer.nodes, offer.pods)


def serve_expander(
    expander: str, address: str, certificate: tuple[bytes, bytes] | None, *, say: Callable[[str], None]
) -> None:
    """Serve a chain of expanders until SIGTERM or Ctrl-C.

    Args:
        expander: The chain, as for ``--expander``.
        address: ``HOST:PORT``; port 0 takes a free one.
        certificate: Our certificate and its key, PEM; None serves plain text.
        say: Takes a line for people.

    Raises: CloudConfigError, CloudNotFound without grpcio.
    """
    choose = chosen_by(expander)
    try:
        from kubetide.clouds.externalgrpc.expander.server import serving  # noqa: PLC0415  # grpcio is an extra
    except ImportError as error:
        raise missing_package("kubetide expander serve", "grpc") from error

    async def main(_clock: Clock) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, ended.set)
        async with serving(choose, address, certificate=certificate) as port:
            say(f"expander {expander} served on {address.rpartition(':')[0]}:{port}")
            await ended.wait()

    run_real(main)

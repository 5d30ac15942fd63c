"""The way of `kubetide load` and `kubetide fault` to a running playground."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from kubetide.objects.base import Json
from kubetide.ports.errors import ApiError, KubetideError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

OURS = "+kubetide"
"""Stands in the version of an embedded cluster."""


class PlaygroundError(KubetideError):
    """There is no playground to talk to; the text says why and what to do."""


def kubeconfig_option() -> Callable[[F], F]:
    """Return the option that names the kubeconfig of the run."""
    return click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        default=Path("kubetide-out") / "kubeconfig",
        show_default=True,
        help="Kubeconfig that `kubetide up --serve` writes.",
    )


def ask(
    kubeconfig: Path,
    method: str,
    path: str,
    model: type[T],
    *,
    query: Mapping[str, str] | None = None,
    body: Json | None = None,
) -> T:
    """Return the answer of a playground to one request. Raises PlaygroundError, ApiError."""
    from kubetide.cluster import HttpCluster, load_kubeconfig
    from kubetide.cluster.limits import Limits
    from kubetide.ports.clock import Clock
    from kubetide.runtime.timing.clock import run_real
    from kubetide.simulate.playground.requests import PREFIX
    from kubetide.units.time import seconds

    if not kubeconfig.is_file():
        raise PlaygroundError(
            f"no run is served here: there is no {kubeconfig}; start one with `kubetide up playground --serve`, "
            "or name its kubeconfig with --kubeconfig"
        )
    connection = load_kubeconfig(kubeconfig)
    answers: list[bytes] = []

    async def main(clock: Clock) -> None:
        async with HttpCluster(connection, clock, limits=Limits(deadline=seconds(10))) as cluster:
            version = msgspec.json.decode(await cluster.get_raw("/version")).get("gitVersion", "")
            if OURS not in version:
                raise PlaygroundError(
                    f"{connection.url} is Kubernetes {version}: load and faults are changed on the embedded "
                    "cluster of `kubetide up --serve` only"
                )
            answers.append(await cluster.send_raw(method, f"{PREFIX}{path}", query, body=body))

    try:
        run_real(main)
    except ApiError as error:
        raise PlaygroundError(f"{error}") from error
    return msgspec.json.decode(answers[0], type=model)

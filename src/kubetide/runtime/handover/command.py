"""Connects ``kubetide handover`` to the cluster of a kubeconfig."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

from kubetide.cluster import HttpCluster, find_connection
from kubetide.ports.clock import Clock
from kubetide.runtime.handover.move import PROGRAM, Handover, Row
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import Duration

_HEAD = Row("HPA", "SERVED BY", "LAST WRITE", "")


def hand_over(
    names: Collection[str],
    *,
    to: str,
    wait: Duration,
    asks: bool,
    force: bool,
    kubeconfig: str,
    context: str,
    namespace: str,
    sync_period: Duration,
    tell: Callable[[str], None],
    show: Callable[[list[Row]], None],
) -> None:
    """Show who serves the HPAs, or move them ``to`` (``kubetide``, ``others``). Raises: HandoverError, ApiError."""

    async def main(clock: Clock) -> None:
        connection = find_connection(os.environ, home=Path.home(), kubeconfig=kubeconfig, context=context)
        async with HttpCluster(connection, clock, program=PROGRAM) as cluster:
            moving = Handover(
                cluster,
                clock,
                tell,
                server_now=cluster.skew.server_now,
                namespace=namespace,
                sync_period=sync_period,
            )
            if to == "kubetide":
                await moving.to_kubetide(names, wait=wait, force=force)
            elif to == "others":
                await moving.to_others(names, wait=wait)
            else:
                show(await moving.rows(names, asks=asks))

    run_real(main)


def table(rows: list[Row]) -> str:
    """Return the rows as aligned text."""
    lines = [_HEAD, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )

"""``kubetide top``: a run or a cluster on a whole terminal."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kubetide.ports.clock import Clock
    from kubetide.simulate.answers.run_screen import Screen

    Look = Callable[[], Screen | str]
    Source = Callable[[Clock], AbstractAsyncContextManager[Look]]

_SECONDS = 2


class _View(Protocol):
    def show(self, screen: Screen) -> None: ...

    def say(self, text: str) -> None: ...


@click.command("top")
@click.option("--once", is_flag=True, help="Print one screen as plain text, and end.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out"),
    show_default=True,
    help="Folder that a run writes to, or wrote to.",
)
@click.option("--kubeconfig", default="", metavar="PATH", help="Show the cluster of this kubeconfig instead.")
@click.option(
    "--context", "context_name", default="", metavar="NAME", help="Show the cluster of this context instead."
)
def command(once: bool, out: Path, kubeconfig: str, context_name: str) -> None:
    """Show scaling live on the whole terminal: pods, nodes, pending objects, the last decisions.

    Reads the decision records of a run, also of a running one. With --kubeconfig or --context it watches that
    cluster instead, whatever controllers run there: HPAs, nodes, pods, and the events of the autoscalers. It writes nothing.

    Rows that need attention come first. Ctrl-C ends it. Without rich (pip install 'rich>=14') it prints plain pages.

    \b
    Examples:
      kubetide top
      kubetide top --out monday --once
      kubetide top --context staging
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.runtime.process import ended_by_signals
    from kubetide.runtime.timing.clock import run_real
    from kubetide.units.time import seconds

    source = _cluster(kubeconfig, context_name) if kubeconfig or context_name else _records(out, once=once)

    async def main(clock: Clock) -> None:
        with _view(once=once) as view:
            async with source(clock) as look:
                while True:
                    screen = look()
                    if isinstance(screen, str):
                        view.say(screen)
                    else:
                        view.show(screen)
                    if once:
                        return
                    await clock.sleep(seconds(_SECONDS))

    try:
        # The terminal is given back, whatever ends it.
        with ended_by_signals():
            run_real(main)
    except KeyboardInterrupt:
        return


def _records(out: Path, *, once: bool) -> Source:
    from kubetide.runtime.recording.folder import is_running
    from kubetide.runtime.recording.records import RecordError
    from kubetide.simulate.answers.run_screen import RecordsTop

    top = RecordsTop(out)

    def look() -> Screen | str:
        try:
            return top.screen()
        except RecordError as error:
            # A run that has just begun has decided nothing yet.
            if once or not is_running(out):
                raise
            return str(error)

    @asynccontextmanager
    async def opened(_clock: Clock) -> AsyncIterator[Look]:
        yield look

    return opened


def _cluster(kubeconfig: str, context: str) -> Source:
    from kubetide.cluster import HttpCluster, find_connection
    from kubetide.doctor.cluster_screen import ClusterTop

    @asynccontextmanager
    async def opened(clock: Clock) -> AsyncIterator[Look]:
        connection = find_connection(os.environ, home=Path.home(), kubeconfig=kubeconfig, context=context)
        async with HttpCluster(connection, clock, program="kubetide-top") as cluster:
            top = ClusterTop(cluster, clock, context or connection.url)
            async with top.watching():
                yield top.screen

    return opened


def _view(*, once: bool) -> AbstractContextManager[_View]:
    """Return what shows screens: the whole terminal where it can, else plain text."""
    if not once and sys.stdout.isatty():
        try:
            from kubetide.cli.screens.live import can_show
            from kubetide.cli.screens.top_view import TopView
        except ImportError:
            return nullcontext(_Plain(clears=True))
        if can_show():
            return TopView()
    return nullcontext(_Plain(clears=not once))


class _Plain:
    """Prints plain pages one after another."""

    def __init__(self, *, clears: bool) -> None:
        self._clears = clears

    def show(self, screen: Screen) -> None:
        from kubetide.cli.screens.top_text import screen_text

        if self._clears and os.environ.get("TERM") != "dumb":
            click.clear()
        click.echo(screen_text(screen))

    def say(self, text: str) -> None:
        click.echo(text)

"""The interface of every loop to the shell that runs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from kubetide.units.time import ZERO, Duration, Instant

if TYPE_CHECKING:
    # Answers from records need none of these.
    import asyncio

    from kubetide.explain.records import Recorder
    from kubetide.objects.meta import Key
    from kubetide.plan.board import Board
    from kubetide.ports.clock import Clock
    from kubetide.ports.cloud import Cloud
    from kubetide.ports.cluster import Cluster
    from kubetide.ports.expander import ExpanderService
    from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource, MetricSource, SeriesSource
    from kubetide.watching import Caches

T = TypeVar("T")


@dataclass
class Health:
    """The runner's observations of a loop's ticks.

    Attributes:
        began: When the last tick began, by the clock's elapsed time.
        took: How long the last tick took that ended well, by the same time; None before the first.
        last_tick: When a tick last ended well; None before the first.
        last_excused: When a tick last ended with an error of the cloud's or the API server's; None for never.
        failures: Ticks that ended with an error; the loop goes on.
        cloud_failures: Those of them whose error was the cloud's.
        bugs: Those of them whose error was neither the cloud's nor the API server's.
        last_failure: The error of the last failed tick, with a traceback where it was a bug.
    """

    began: Duration = ZERO
    took: Duration | None = None
    last_tick: Instant | None = None
    last_excused: Instant | None = None
    failures: int = 0
    cloud_failures: int = 0
    bugs: int = 0
    last_failure: str = ""


class Loop(Protocol):
    """A loop, as ``loop.runner.Runner`` drives it. It has no timer of its own."""

    health: Health
    """Written by the runner, read by whoever asks how the loop is."""

    @property
    def name(self) -> str:
        """The loop's name in records, series and ``--controllers``."""
        ...

    @property
    def period(self) -> Duration:
        """The time from the start of a tick to the start of the next."""
        ...

    @property
    def eager(self) -> asyncio.Event | None:
        """Set to ask for ``early`` at once; cleared when it starts. None for a loop that never asks."""
        ...

    @property
    def early_restarts_period(self) -> bool:
        """Whether the next tick is due a period after an early one; else it keeps its time."""
        ...

    @property
    def ticks_at_once(self) -> bool:
        """Whether the first tick runs once the caches are synced, not a period later."""
        ...

    @property
    def holds(self) -> Sequence[str]:
        """Why the last tick removed nothing, one sentence each; empty if nothing held it."""
        ...

    @property
    def sources(self) -> Sequence[SourceHealth]:
        """The metric sources of the loop."""
        ...

    async def synced(self) -> None:
        """Return once the caches that the loop needs are synced."""
        ...

    async def tick(self) -> None:
        """Gather, decide, act, absorb and record once. Raises CloudError, ApiError."""
        ...

    async def early(self) -> None:
        """Tick before it is time, for what ``eager`` was set for. Raises CloudError, ApiError."""
        ...

    def next_wake(self) -> Instant | None:
        """Return when ``wake`` is due, if that is before the next tick; None if nothing is due."""
        ...

    async def wake(self) -> None:
        """Advance the work between two ticks. Raises CloudError, ApiError."""
        ...

    def start_anew(self) -> None:
        """Drop all derived state after a tick that ended with a bug: the caches still hold its input."""
        ...

    async def close(self) -> None:
        """Withdraw, once the loop has ended, what would mislead others."""
        ...


class SourceHealth(Protocol):
    """The health of a metric source.

    Attributes:
        last_error: What it last said where it had no answer; empty where it always had one.
        failing_since: Since when no question has had an answer; None while questions have one.
        problem: Why the first of these questions had none.
    """

    name: str
    last_error: str
    failing_since: Instant | None
    problem: str


class Owners(Protocol):
    """Who serves an object: this program or another controller."""

    def left_alone(self) -> Collection[Key]:
        """Return the objects that must not be changed now."""
        ...

    def why(self, key: Key) -> str:
        """Return why an object of ``left_alone`` is left alone, as the part of a sentence that follows a colon."""
        ...

    def knows(self, key: Key) -> bool:
        """Return whether the object has been seen: unseen ones must not be changed, either."""
        ...


class Offload(Protocol):
    """Runs a function without blocking others, and returns its result."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


class Answers(Protocol):
    """Calls a webhook of this process without a connection, for the API server of an embedded cluster."""

    def serve(self, answer: Callable[[bytes], bytes], /) -> None:
        """Answer each review with what this returns for its body, from now on."""
        ...


class Sources(NamedTuple):
    """Metric sources; all except resource metrics may be missing."""

    resource: MetricSource
    custom: CustomMetricSource | None = None
    external: ExternalMetricSource | None = None
    series: SeriesSource | None = None


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts that a loop is built from besides its settings: ports, shared by the loops of a process.

    Attributes:
        caches: Kept up to date by whoever made them.
        cloud: None where no loop of the process needs one.
        board: Where intents are announced and capacity is answered; None in strict drop-in modes.
        seed: For picks among equals.
        owners: Which objects another controller serves; None where nobody else is there.
        advises: Whether nothing is written, and others scale.
        answers: Calls the webhooks of the loops; None where an API server calls them over the network.
        warn: Takes a sentence that a person must see.
        offload: Runs a decision that may take long where it holds nobody up, such as ``asyncio.to_thread``; None where
            there is only one thread, as in virtual time.
        expander: An expander in a process of its own; None where there is none.
    """

    cluster: Cluster
    clock: Clock
    recorder: Recorder
    caches: Caches
    board: Board | None = None
    sources: Sources | None = None
    cloud: Cloud | None = None
    seed: int = 0
    owners: Owners | None = None
    advises: bool = False
    answers: Answers | None = None
    warn: Callable[[str], None] = lambda _: None
    offload: Offload | None = None
    expander: ExpanderService | None = None

"""A loop's entry: everything that the rest of the program knows about the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from kubetide.explain.records import Record
from kubetide.loop.flags import FlagTable, Value
from kubetide.loop.outlook import Outlook
from kubetide.loop.roles import Role
from kubetide.loop.status import Overview
from kubetide.units.time import hours

if TYPE_CHECKING:
    from kubetide.explain.reasons import Reason, Vocabulary
    from kubetide.explain.records import Core, OneObjectCore
    from kubetide.loop.protocol import Loop, Parts
    from kubetide.objects.kinds import Kind
    from kubetide.ports.clock import Clock
    from kubetide.ports.plugins import Plugin
    from kubetide.units.exposition import Registry
    from kubetide.units.time import Instant

S = TypeVar("S", bound=msgspec.Struct)

WEEK: Final = hours(7 * 24)

Past = Iterator[tuple["Instant", Sequence["Reason"]]]
"""Times, and what was said of an object then."""

Listener = Callable[[Record], None]
"""Called with each record of a loop as it is written."""


class HttpReply(NamedTuple):
    """The reply to a request: the HTTP status, and JSON."""

    status: int
    body: bytes


class Explainer(NamedTuple):
    """Answers ``kubetide explain KIND NAME`` from a loop's core.

    Attributes:
        kind: The word of the command line.
        namespaced: Whether names have a namespace; the subject is then ``namespace/name``.
        lines: Returns the answer, a sentence a line, of a core, which it only reads, a subject, the time and a view.
            Raises KeyError where there is no such object.
        names: Returns the subjects that a core knows.
        views: Other answers about the same object, by the option that asks for them; ``lines`` gets its name.
        after_decision: Whether the answer is made of the core as it is after the decision of that time.
        targets: Returns, by subject, the workload that it scales, ``KIND/NAMESPACE/NAME``; None for kinds that scale none.
        alone: Makes a core that follows one subject alone, with the same results in less time; None where there is none.
        targets_alone: Makes a core that answers ``targets`` only, with the same results in less time.
        why_not_changed: Returns why a change of the tick to a subject was not made, a sentence, of the outcomes in its record; empty
            where it was, or where none was decided.
        added_by: The loop that adds a sentence to the first line of the answer (``Explaining.adds``), where it is recorded.
        since_last_week: Returns what a week has changed, a line behind the first one, of a core, a subject, the time, and what was
            said of the subject: from a ``WEEK`` ago back, or of records that begin later from their beginning on. Empty for nothing.
    """

    kind: str
    lines: Callable[[Any, str, Instant, str], list[str]]
    names: Callable[[Any], list[str]]
    namespaced: bool = False
    views: tuple[str, ...] = ()
    after_decision: bool = True
    targets: Callable[[Any], dict[str, str]] | None = None
    alone: Callable[[str], OneObjectCore] | None = None
    targets_alone: Callable[[], OneObjectCore] | None = None
    why_not_changed: Callable[[bytes, str], str] | None = None
    added_by: str = ""
    since_last_week: Callable[[Any, str, Instant, Past], str] | None = None


Sentence = Callable[[Any, str, "Instant"], str]
"""Returns a sentence about a subject, of a loop's core, which it only reads, and the time; empty for nothing."""


class Explaining(NamedTuple):
    """The part of a loop that answers from records: all that ``explain`` needs, without a controller.

    Attributes:
        name: Of the loop.
        core: Makes a fresh core; None for a loop that records nothing.
        vocabulary: Its reasons.
        explainers: What can be asked about.
        adds: The sentence that it adds to answers of another loop, by their kind.
    """

    name: str
    core: Callable[[], Core] | None
    vocabulary: Vocabulary
    explainers: tuple[Explainer, ...] = ()
    adds: Mapping[str, Sentence] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class LoopEntry(Generic[S]):
    """One loop, for the wiring of a process, the simulator, replay, ``explain`` and the marks of a report.

    Attributes:
        name: In records, series and ``--controllers``.
        flags: Its flags, and with them its settings.
        make: Makes the loop of the ends of the ports and its settings.
        core: Makes a fresh core, for replay and ``explain``; None for a loop that records nothing.
        vocabulary: Its reasons.
        plugins: Returns the plug-ins of other packages that its settings name, scheduler filters aside; for the records.
            Raises PluginNotUsable.
        roles: What it asks of the API server.
        lease: The name of the Lease whose holder alone acts; empty for a loop whose replicas all act.
        stands_by: Whether, by its settings, a replica that waits for its Lease runs it already: it answers others, and writes
            nothing meanwhile.
        series: Adds the loop's series; returns what is called with its records. None for a loop without any.
        explainers: What can be asked about.
        adds: The sentence that it adds to answers of another loop, by their kind.
        status: What it shows on the page of ``kubetide status``; None for nothing but its ticks and decisions.
        outlook: What it foresees, for ``kubetide plan``; None for nothing.
        needs_cloud: Whether it cannot run without node groups.
        reads_board: Whether its ticks wait for those of the loops that announce on the board.
        optional_kinds: What it can do without where the cluster refuses it or does not serve it.
        simulated_flags: Where a simulated run differs from the defaults, by flag.
        posts: What the address of health and metrics answers to a POST, by path: of the loop and the body.
        view: Returns, of the loop and the parts of the others, the parts that all other loops of the process are
            made of, where this one shows them more than the cluster holds; None where it does not.
    """

    name: str
    flags: FlagTable[S]
    make: Callable[[Parts, S], Loop]
    core: Callable[[], Core] | None
    vocabulary: Vocabulary
    plugins: Callable[[S], Sequence[Plugin]] = lambda _: ()
    roles: tuple[Role, ...] = ()
    lease: str = "kubetide"
    stands_by: Callable[[S], bool] = lambda _: False
    series: Callable[[Registry, Any, Clock], Listener] | None = None
    explainers: tuple[Explainer, ...] = ()
    adds: Mapping[str, Sentence] = field(default_factory=lambda: MappingProxyType({}))
    status: Overview | None = None
    outlook: Outlook | None = None
    needs_cloud: bool = False
    reads_board: bool = False
    optional_kinds: tuple[Kind[Any], ...] = ()
    simulated_flags: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    posts: Mapping[str, Callable[[Any, bytes], HttpReply]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    view: Callable[[Any, Parts], Parts] | None = None

    @property
    def explaining(self) -> Explaining:
        """The part that answers from records."""
        return Explaining(self.name, self.core, self.vocabulary, self.explainers, self.adds)

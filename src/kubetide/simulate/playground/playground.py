"""A running embedded cluster with an API to change its load and faults."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from kubetide.embedded.cloud.faults import CallFailure, Window
from kubetide.embedded.load import ConstantTrace
from kubetide.explain.records import Record
from kubetide.objects.base import Json
from kubetide.ports.errors import AlreadyExists, BadRequest, Conflict, MethodNotAllowed, NotFound
from kubetide.simulate.faults import ready_nodes
from kubetide.simulate.outcome.observe import shown_name
from kubetide.simulate.playground.explaining import NAME, Asked
from kubetide.simulate.playground.reasons import reasons_of
from kubetide.simulate.playground.requests import (
    PREFIX,
    ActiveFault,
    FaultAsked,
    FaultKind,
    Faults,
    LoadAsked,
    LoadRow,
    Loads,
    checked_requests,
    no_such,
    read,
)
from kubetide.simulate.playground.state import ABOUT, GROUP_KINDS, Change, Fault, State, changed
from kubetide.simulate.scenarios.build import cloud_faults_of
from kubetide.simulate.world import World
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, Instant, after, format_rfc3339, minutes, parse_duration, seconds

_EXPIRE_EVERY = minutes(1)


class Playground:
    """Changes load and faults of a world while it runs, and records each change; a context manager.

    A change is in force when its answer is sent, and is recorded as a decision is: with what was before it.
    """

    prefix = PREFIX

    def __init__(self, world: World) -> None:
        self._world = world
        services = world.load.services
        self._numbers = {f"{one.namespace}/{one.name}": number for number, one in enumerate(services)}
        self._traces = [one.trace for one in services]
        self._groups = tuple(sorted(group.name for group in world.scenario.node_groups))
        self._stated = cloud_faults_of(world.scenario)
        self._state = State(services=tuple(self._numbers))
        self._changes = 0
        self._timers: dict[Fault, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        persisted = self._world.persisted
        if persisted is not None and persisted.playground is not None:
            self._restore(msgspec.convert(persisted.playground, State))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._timers.values():
            task.cancel()
        await asyncio.gather(*self._timers.values(), return_exceptions=True)

    async def answer(self, method: str, path: str, query: Mapping[str, str], body: Any, user: str) -> Json:
        """Return the answer to a request. Raises ApiError."""
        if path == "load":
            if method == "PUT":
                self._set_load(read(body, LoadAsked), user)
            elif method != "GET":
                raise MethodNotAllowed("the load is read with GET and changed with PUT")
            return _json(self._loads())
        if path == "faults":
            if method == "POST":
                await self._inject(read(body, FaultAsked), user)
            elif method == "DELETE":
                await self._clear(query.get("kind", ""), query.get("group", ""), user)
            elif method != "GET":
                raise MethodNotAllowed("faults are read with GET, injected with POST and cleared with DELETE")
            return _json(self._faults())
        raise NotFound(f"{PREFIX}{path}: no such path; there are {PREFIX}load and {PREFIX}faults")

    def _restore(self, persisted: State) -> None:
        """Go on with what an earlier start of the run had changed, as far as the scenario still has it."""
        loads = {name: value for name, value in persisted.loads.items() if name in self._numbers}
        faults = tuple(one for one in persisted.faults if one.group in {"", *self._groups})
        self._state = State(services=tuple(self._numbers), loads=loads, faults=faults)
        if not loads and not faults:
            return
        self._record(Change("restore"))
        for name, requests in loads.items():
            self._world.load.set_trace(self._numbers[name], ConstantTrace(requests))
        for one in faults:
            self._watch_over(one)

    # ── load ────────────────────────────────────────────────────────────────────────────────────

    def _loads(self) -> Loads:
        return Loads(loads=tuple(map(self._load_row, self._numbers)))

    def _load_row(self, service: str) -> LoadRow:
        series = self._world.timeline.services[shown_name(*service.split("/", 1))]
        return LoadRow(
            service=service,
            requests_per_second=series.offered[-1] if series.offered else 0.0,
            set_to=self._state.loads.get(service),
            replicas=series.desired[-1] if series.desired else 0,
            ready=series.ready[-1] if series.ready else 0,
        )

    def _set_load(self, asked: LoadAsked, user: str) -> None:
        service = asked.service if "/" in asked.service else f"default/{asked.service}"
        number = self._numbers.get(service)
        if number is None:
            raise no_such("service under load", asked.service, self._numbers)
        requests = checked_requests(asked)
        before = self._load_row(service).requests_per_second
        if requests is None:
            self._record(Change("reset-load", by=user, service=service, before=before))
            self._world.load.set_trace(number, self._traces[number])
        else:
            self._record(Change("set-load", by=user, service=service, requests=requests, before=before))
            self._world.load.set_trace(number, ConstantTrace(requests))

    # ── faults ──────────────────────────────────────────────────────────────────────────────────

    def _faults(self) -> Faults:
        return Faults(
            kinds=tuple(
                FaultKind(kind=kind, about=about, takes_group=kind in GROUP_KINDS)
                for kind, about in ABOUT.items()
            ),
            groups=self._groups,
            active=tuple(
                ActiveFault(
                    kind=one.kind,
                    group=one.group,
                    where=one.where,
                    since=format_rfc3339(one.start),
                    until="" if one.end is None else format_rfc3339(one.end),
                    probability=one.probability,
                )
                for one in self._state.faults
            ),
        )

    async def _inject(self, asked: FaultAsked, user: str) -> None:
        fault = self._fault(asked)
        self._record(Change("inject", by=user, faults=(fault,)))
        await self._fail_node(fault)
        self._watch_over(fault)

    async def _fail_node(self, fault: Fault) -> None:
        """Silence the kubelet that a fault is about, where it is about one."""
        if fault.node and self._world.kubelets is not None:
            with suppress(NotFound):
                await self._world.kubelets.fail_node(fault.node)

    async def _fail_later(self, fault: Fault) -> None:
        """Silence the kubelet once a run that goes on has read its nodes."""
        while self._world.kubelets is None:
            await self._world.clock.sleep(seconds(1))
        await self._fail_node(fault)

    def _watch_over(self, fault: Fault) -> None:
        """Do what a fault does again and again, and end it in time."""
        if fault.end is not None or fault.kind in ("watch-expiry", "node-failure"):
            self._timers[fault] = asyncio.get_running_loop().create_task(self._last(fault))

    def _fault(self, asked: FaultAsked) -> Fault:
        """Return the fault that is asked for, which begins now. Raises ApiError."""
        if asked.kind not in ABOUT:
            raise no_such("kind of fault", asked.kind, ABOUT)
        if asked.group and asked.kind not in GROUP_KINDS:
            raise BadRequest(f"{asked.kind} is about the API server; leave the node group out")
        if asked.group and asked.group not in self._groups:
            raise no_such("node group", asked.group, self._groups)
        if not 0 < asked.probability <= 1:
            raise BadRequest(f"probability: {asked.probability:g} is not above 0 and at most 1")
        now = self._world.clock.now()
        fault = Fault(
            kind=asked.kind,
            group=asked.group,
            start=now,
            end=_end(asked.for_, now),
            probability=asked.probability,
        )
        if fault.kind == "node-failure":
            return msgspec.structs.replace(fault, node=self._node_that_fails(fault))
        if any((one.kind, one.group) == (fault.kind, fault.group) for one in self._state.faults):
            raise AlreadyExists(f"{fault.kind} of {fault.where} is on already; clear it first")
        return fault

    def _node_that_fails(self, fault: Fault) -> str:
        """Draw a Ready node of the group. Raises Conflict where there is none."""
        if fault.probability < 1:
            raise BadRequest("node-failure hits one node for sure; leave the probability out")
        ready = [] if self._world.kubelets is None else ready_nodes(self._world.nodes, fault.group)
        if not ready:
            raise Conflict(f"no Ready node in {fault.where}; nothing can fail")
        return ready[int(unit_interval(self._world.seed, NAME, self._changes) * len(ready))]

    async def _clear(self, kind: str, group: str, user: str) -> None:
        """End the faults of a kind and a group, empty for all. Raises NotFound where none is on."""
        if kind and kind not in ABOUT:
            raise no_such("kind of fault", kind, ABOUT)
        if group and group not in self._groups:
            raise no_such("node group", group, self._groups)
        found = tuple(
            one for one in self._state.faults if kind in {"", one.kind} and group in {"", one.group}
        )
        if not found and (kind or group):
            on = ", ".join(f"{one.kind} of {one.where}" for one in self._state.faults) or "none"
            raise NotFound(f"no such fault is on: {' '.join(filter(None, (kind, group)))}; on: {on}")
        if found:
            await self._end(found, user)

    async def _end(self, faults: tuple[Fault, ...], user: str) -> None:
        self._record(Change("clear", by=user, faults=faults))
        for one in faults:
            timer = self._timers.pop(one, None)
            if timer is not None and timer is not asyncio.current_task():
                timer.cancel()
            if one.node and self._world.kubelets is not None:
                with suppress(NotFound):
                    await self._world.kubelets.recover_node(one.node)

    async def _last(self, fault: Fault) -> None:
        """End watches as long as the fault lasts, where that is its kind, and the fault at its end."""
        clock = self._world.clock
        due = max(fault.start, clock.now())
        if fault.node and self._world.kubelets is None:
            await self._fail_later(fault)
        while fault.kind == "watch-expiry" and (fault.end is None or due < fault.end):
            await clock.sleep(Duration(max(due - clock.now(), 0)))
            self._world.cluster.expire_watches()
            due = after(due, _EXPIRE_EVERY)
        if fault.end is not None:
            await clock.sleep(Duration(max(fault.end - clock.now(), 0)))
            await self._end((fault,), "")

    # ── both ────────────────────────────────────────────────────────────────────────────────────

    def _record(self, change: Change) -> None:
        """Put a change of faults into force, and record a change. Raises ApiError where it cannot be written."""
        before, after_it = self._state, changed(self._state, change)
        if self._world.persisted is not None:
            self._world.persisted.keep_playground(msgspec.to_builtins(after_it))
        self._state = after_it
        self._changes += 1
        self._apply_faults()
        self._world.recorder.write(
            Record(
                loop=NAME,
                tick=self._changes,
                now=self._world.clock.now(),
                full=True,
                state=msgspec.Raw(msgspec.json.encode(Asked(before, change))),
                commands=msgspec.Raw(msgspec.json.encode(self._state)),
                reasons=reasons_of(change, after_it),
            )
        )

    def _apply_faults(self) -> None:
        on = self._state.faults
        stated = self._stated
        self._world.cloud.use_faults(
            replace(
                stated,
                stock_outs=(*stated.stock_outs, *_windows(on, "stock-out")),
                boot_failures=(*stated.boot_failures, *_windows(on, "boot-failure")),
                call_failures=(*stated.call_failures, *map(CallFailure, _windows(on, "cloud-error"))),
            )
        )
        if self._world.api_faults is not None:
            self._world.api_faults.inject(
                [(one.start, None, one.probability) for one in on if one.kind == "api-error"]
            )


def _windows(faults: tuple[Fault, ...], kind: str) -> tuple[Window, ...]:
    return tuple(
        Window(start=one.start, group=one.group, probability=one.probability)
        for one in faults
        if one.kind == kind
    )


def _end(text: str, now: Instant) -> Instant | None:
    if not text:
        return None
    try:
        length = parse_duration(text)
    except ValueError as error:
        raise BadRequest(f"for: {text!r} is not a duration such as 90s or 10m") from error
    if length <= 0:
        raise BadRequest(f"for: {text} is not above 0")
    return after(now, length)


def _json(value: Loads | Faults) -> Json:
    found: Json = msgspec.to_builtins(value)
    return found

"""One scenario played several times with other loops, flags and manifests: the checks, and the table of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.embedded.apiserver.manifests.manifest import CustomKinds
from kubetide.loop import (
    FlagError,
    LoopEntry,
    expand_groups,
    is_loop,
    loop_entries,
    loop_names,
    parse_flags,
)
from kubetide.simulate.outcome.summary import ServiceSummary, Summary
from kubetide.simulate.outcome.table import Table, aligned, count, decimal, percent
from kubetide.simulate.scenarios.build import Manifests, manifests_in
from kubetide.simulate.scenarios.dumps import without_made
from kubetide.simulate.scenarios.notices import problems_in
from kubetide.simulate.scenarios.problems import Checker
from kubetide.simulate.scenarios.spec import Scenario, ScenarioError, VariantSpec
from kubetide.units.names import dns1123_subdomain_errors


def variant_of(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario of the variant, without flags of the scenario that its loops do not have."""
    one = scenario.variants[name]
    loops = scenario.loops if one.loops is None else one.loops
    entries = loop_entries(loops)
    flags = {flag: value for flag, value in scenario.flags.items() if _is_read(flag, value, entries)}
    return msgspec.structs.replace(
        scenario,
        loops=loops,
        flags={**flags, **one.flags},
        manifests=(*scenario.manifests, *one.manifests),
        variants={},
    )


def _is_read(flag: str, value: str | float | bool, entries: Sequence[LoopEntry[Any]]) -> bool:
    try:
        parse_flags({flag: value}, entries)
    except FlagError:
        return False
    return True


def check_variants(
    check: Checker, scenario: Scenario, base: Path, manifests: Manifests | None, custom: CustomKinds
) -> None:
    """Check the variants: names, loops, flags and manifests.

    Args:
        manifests: The objects of the scenario; None if not all could be read.
        custom: Kinds that these define.
    """
    for name, variant in scenario.variants.items():
        where = f"variants[{name}]"
        check.fits(dns1123_subdomain_errors(name), where, name)
        loops = expand_groups(scenario.loops if variant.loops is None else variant.loops)
        for loop in loops:
            if not is_loop(loop):
                check.one_of(loop, loop_names(), f"{where}.loops", "loop")
        entries = loop_entries(filter(is_loop, loops))
        for flag, value in variant.flags.items():
            try:
                parse_flags({flag: value}, entries)
            except FlagError as error:
                check.that(False, f"{where}.flags[{flag}]", str(error))
        own = _own_manifests(check, variant, where, base, dict(custom))
        if manifests is not None:
            together, _ = without_made([*manifests, *own])
            for problem in problems_in(together):
                # One of the scenario's own is reported there.
                check.that(problem in problems_in(manifests), f"{where}.manifests", problem)


def _own_manifests(
    check: Checker, variant: VariantSpec, where: str, base: Path, custom: CustomKinds
) -> Manifests:
    found: Manifests = []
    for number, entry in enumerate(variant.manifests):
        field = f"{where}.manifests[{number}]"
        try:
            within = (str(check.path), check.line_of(field)) if check.has_lines else None
            found += manifests_in(entry, field, base, within=within, custom=custom)
        except ScenarioError as error:
            check.add(str(error))
    return found


def _mean(services: tuple[ServiceSummary, ...], share: str) -> float:
    """Return the mean over the services; each counts the same, whatever its size."""
    return sum(getattr(one, share) for one in services) / len(services) if services else 0.0


def _unserved(services: tuple[ServiceSummary, ...]) -> float:
    requests = sum(one.requests for one in services)
    return sum(one.requests * one.unserved_share for one in services) / requests if requests else 0.0


_Column = Callable[[Summary], str]

_OF_VPA: Final[Mapping[str, _Column]] = {
    "evictions": lambda one: count(one.vpa_evictions),
    "resizes": lambda one: count(one.resizes),
}
_OF_SERVICES: Final[Mapping[str, _Column]] = {
    "OOM kills": lambda one: count(sum(service.oom_kills for service in one.services)),
    **_OF_VPA,
    "rescales": lambda one: count(sum(service.rescales for service in one.services)),
    "turns": lambda one: count(sum(service.turns for service in one.services)),
    "CPU slack": lambda one: percent(_mean(one.services, "cpu_slack"), 1),
    "memory slack": lambda one: percent(_mean(one.services, "memory_slack"), 1),
    "throttled": lambda one: percent(_mean(one.services, "throttled_share"), 2),
    "SLO min": lambda one: count(sum(service.slo_minutes_lost for service in one.services)),
    "unserved": lambda one: percent(_unserved(one.services), 2),
}
_OF_WAITS: Final[Mapping[str, _Column]] = {
    "median wait, s": lambda one: decimal(one.wait_p50_s, 1),
    "p95 wait, s": lambda one: decimal(one.wait_p95_s, 1),
    "longest wait, s": lambda one: decimal(one.wait_max_s, 1),
    "left waiting": lambda one: count(one.left_pending),
}
_OF_NODES: Final[Mapping[str, _Column]] = {
    "nodes bought": lambda one: count(one.nodes_added),
    "cost": lambda one: decimal(one.cost, 2),
}


def variants_table(summaries: Mapping[str, Summary]) -> str:
    """Return one line per variant, in order, as aligned text; figures that no variant has are left out."""
    played = summaries.values()
    columns: dict[str, _Column] = {}
    if any(one.services for one in played):
        columns |= _OF_SERVICES
    elif any(one.vpa_evictions or one.resizes for one in played):
        columns |= _OF_VPA
    if any(one.wait_max_s or one.left_pending for one in played):
        columns |= _OF_WAITS
    columns |= _OF_NODES
    rows = ((name, *(cell(one) for cell in columns.values())) for name, one in summaries.items())
    return aligned(Table(columns=("variant", *columns), rows=tuple(rows)))

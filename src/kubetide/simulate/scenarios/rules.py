"""Checks the content of a scenario whose structure is valid."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubetide.embedded.apiserver.manifests.manifest import CustomKinds
from kubetide.embedded.cloud import CATALOGUE, GROUP_LABEL
from kubetide.loop import (
    FlagError,
    LoopEntry,
    expand_groups,
    is_loop,
    loop_entries,
    loop_names,
    parse_flags,
)
from kubetide.nodes.expander import packs_all_groups
from kubetide.objects.base import json_name
from kubetide.objects.yaml_reading import Document
from kubetide.scheduling.scoring import PROFILES
from kubetide.simulate.scenarios.build import Manifests, manifests_in
from kubetide.simulate.scenarios.dumps import without_made
from kubetide.simulate.scenarios.load_rules import check_external_metrics, check_services
from kubetide.simulate.scenarios.machines import created_name, instance_type_of, no_instance_type
from kubetide.simulate.scenarios.notices import problems_in
from kubetide.simulate.scenarios.problems import Checker, nanoseconds
from kubetide.simulate.scenarios.spec import (
    CENTURY,
    FAULT_KINDS,
    MOST_SPEED,
    NEVER,
    FaultSpec,
    NodeGroupSpec,
    Scenario,
    ScenarioError,
    is_speed,
    parse_range,
)
from kubetide.simulate.variants import check_variants
from kubetide.units.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_key_errors,
    label_value_errors,
)
from kubetide.units.time import parse_rfc3339

_MOST_DEVICES = 128
"""That one ResourceSlice may hold."""
_FIRST, _LAST = "1970-01-01T00:00:00Z", "2150-01-01T00:00:00Z"
"""Between these a run may begin."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LONGEST_LABEL = 63
_LONGEST_NAME = _LONGEST_LABEL - len("-xxxxx")
"""Of a group: a node's name, which is a label of the node, adds a suffix to it."""
_LABELS_OF_THE_RUN = (GROUP_LABEL, "kubernetes.io/hostname")
_MOST_STEPS = 50_000_000
"""Of a run: a year in steps of a second has fewer."""
_WITHOUT_GROUP = ("api-error", "watch-expiry")


def check_scenario(path: Path, document: Document, scenario: Scenario) -> None:
    """Raise ScenarioError with a line for each problem, naming file, line, field and fix."""
    check = Checker(path, document)
    check.that(bool(scenario.name.strip()), "name", "empty; give the scenario a name")
    check.parses(parse_rfc3339, scenario.start, "start")
    check.duration(scenario.duration, "duration", least=1)
    _check_years(check, scenario)
    check.duration(scenario.step, "step", least=1)
    duration, step = nanoseconds(scenario.duration), nanoseconds(scenario.step)
    check.that(
        duration is None or step is None or step <= duration or duration <= 0,
        "step",
        f"{scenario.step} is longer than the run, {scenario.duration}; lower it",
    )
    if duration and step and step > 0 and duration <= CENTURY:
        steps = duration // step
        check.that(
            steps <= _MOST_STEPS,
            "step",
            f"{scenario.step} makes {steps} steps of {scenario.duration}, and a run has at most {_MOST_STEPS}; raise it",
        )
    check.duration(scenario.warm_up, "warmUp")
    for field in ("image_pull", "start", "ready", "stop"):
        check.parses(parse_range, getattr(scenario.pods, field), f"pods.{json_name(field)}")
    check.that(
        scenario.scheduler in PROFILES,
        "scheduler",
        f"{scenario.scheduler!r} is no profile of the scheduler; write one of {', '.join(PROFILES)}",
    )
    _check_instance_types(check, scenario)
    _check_groups(check, scenario)
    _check_new_groups(check, scenario)
    custom: CustomKinds = {}
    manifests = _check_manifests(check, scenario, path.parent, custom)
    check_services(check, scenario, manifests, path.parent)
    check_external_metrics(check, scenario, path.parent)
    _check_flags(check, scenario, _check_loops(check, scenario))
    _check_prices(check, scenario)
    for index, fault in enumerate(scenario.faults):
        _check_fault(check, scenario, fault, f"faults[{index}]")
    _check_show(check, scenario)
    check_variants(check, scenario, path.parent, manifests, custom)
    check.finish()


def _check_years(check: Checker, scenario: Scenario) -> None:
    """Times are stored as nanoseconds since 1970 in 64 bits; a live run without an end lasts a century."""
    try:
        start = parse_rfc3339(scenario.start)
    except ValueError:
        return
    first, last = (year[:4] for year in (_FIRST, _LAST))
    check.that(
        parse_rfc3339(_FIRST) <= start < parse_rfc3339(_LAST),
        "start",
        f"{scenario.start} is before {first} or after {int(last) - 1}; choose a year in between",
    )
    duration = nanoseconds(scenario.duration)
    check.that(
        duration is None or duration <= CENTURY,
        "duration",
        f"{scenario.duration} is more than a century; lower it",
    )


def _check_instance_types(check: Checker, scenario: Scenario) -> None:
    for name, kind in scenario.instance_types.items():
        where = f"instanceTypes[{name}]"
        before = check.count
        check.quantity(kind.cpu, f"{where}.cpu", positive=True)
        check.quantity(kind.memory, f"{where}.memory", positive=True)
        if kind.actual_memory is not None:
            check.quantity(kind.actual_memory, f"{where}.actualMemory", positive=True)
        check.quantity(kind.reserved_cpu, f"{where}.reservedCpu")
        check.quantity(kind.reserved_memory, f"{where}.reservedMemory")
        check.that(kind.pods > 0, f"{where}.pods", f"{kind.pods} must be greater than 0")
        check.that(kind.gpu >= 0, f"{where}.gpu", f"{kind.gpu} must be 0 or more")
        check.number(kind.price_per_hour, f"{where}.pricePerHour")
        if check.count == before:
            check.parses(functools.partial(instance_type_of, name), kind, where)


def _check_groups(check: Checker, scenario: Scenario) -> None:
    known = {*CATALOGUE, *scenario.instance_types}
    seen: set[str] = set()
    check.that(
        bool(scenario.node_groups or scenario.new_groups),
        "nodeGroups",
        "empty; a cluster needs at least one node group, or `newGroups` that it may create",
    )
    for index, group in enumerate(scenario.node_groups):
        where = f"nodeGroups[{index}]"
        check.name(where, group.name)
        twice = group.name in seen
        seen.add(group.name)
        check.that(not twice, f"{where}.name", f"{group.name} stands twice; give each group its own name")
        check.that(
            group.instance_type in known,
            f"{where}.instanceType",
            no_instance_type(group.instance_type, scenario.instance_types),
        )
        _check_names(check, group, where)
        _check_sizes(check, group, where)
        for name in ("boot", "ready", "shutdown"):
            check.parses(parse_range, getattr(group, f"{name}_time"), f"{where}.{name}Time")
        for driver, count in group.devices.items():
            check.fits(dns1123_subdomain_errors(driver), f"{where}.devices", driver)
            in_range = 0 < count <= _MOST_DEVICES
            check.that(
                in_range, f"{where}.devices[{driver}]", f"{count} must be between 1 and {_MOST_DEVICES}"
            )
        if group.price_per_hour is not None:
            check.number(group.price_per_hour, f"{where}.pricePerHour")
        effects = [(taint.key, taint.effect) for taint in group.taints]
        for number, (key, effect) in enumerate(effects):
            check.one_of(effect, _EFFECTS, f"{where}.taints[{number}].effect", "effect")
            twice = (key, effect) in effects[:number]
            check.that(
                not twice, f"{where}.taints[{number}]", f"{key}:{effect} stands twice; leave one of them out"
            )


def _check_new_groups(check: Checker, scenario: Scenario) -> None:
    spec = scenario.new_groups
    if spec is None:
        return
    known = {*CATALOGUE, *scenario.instance_types}
    for field, values in (("instanceTypes", spec.instance_types), ("zones", spec.zones)):
        check.that(bool(values), f"newGroups.{field}", "empty; name at least one")
        twice = sorted({value for value in values if values.count(value) > 1})
        check.that(not twice, f"newGroups.{field}", f"{', '.join(twice)} stands twice")
    for name in spec.instance_types:
        check.that(name in known, "newGroups.instanceTypes", no_instance_type(name, scenario.instance_types))
        check.fits(label_value_errors(name), "newGroups.instanceTypes", name)
    for zone in spec.zones:
        errors = label_value_errors(zone)
        check.fits(errors, "newGroups.zones", zone)
        if errors:
            continue
        for kind in spec.instance_types:
            name = created_name(kind, zone)
            check.fits(dns1123_subdomain_errors(name), "newGroups.zones", name)
            check.that(
                len(name) <= _LONGEST_NAME,
                "newGroups.zones",
                f"{zone}: a group in it is called {name}, which has {len(name)} characters; nodes are named after "
                f"their group, which leaves it {_LONGEST_NAME}",
            )
    check.that(spec.max > 0, "newGroups.max", f"{spec.max} must be greater than 0")
    for name in ("boot", "ready", "shutdown"):
        check.parses(parse_range, getattr(spec, f"{name}_time"), f"newGroups.{name}Time")


def _check_names(check: Checker, group: NodeGroupSpec, where: str) -> None:
    """Name become parts of node names and values of labels, so the API server's rules hold for them."""
    check.fits(dns1123_label_errors(group.name), f"{where}.name", group.name)
    length = len(group.name)
    check.that(
        length <= _LONGEST_NAME or length > _LONGEST_LABEL,
        f"{where}.name",
        f"{length} characters; nodes are named after their group, which leaves it {_LONGEST_NAME}",
    )
    check.fits(label_value_errors(group.zone), f"{where}.zone", group.zone)
    check.fits(label_value_errors(group.instance_type), f"{where}.instanceType", group.instance_type)
    for key, value in group.labels.items():
        check.fits(label_key_errors(key), f"{where}.labels[{key}]", key)
        check.fits(label_value_errors(value), f"{where}.labels[{key}]", value)
        own = key in _LABELS_OF_THE_RUN
        check.that(
            not own, f"{where}.labels[{key}]", "each node gets its own value from the run; leave it out"
        )
    for number, taint in enumerate(group.taints):
        check.fits(label_key_errors(taint.key), f"{where}.taints[{number}].key", taint.key)
        check.fits(label_value_errors(taint.value), f"{where}.taints[{number}].value", taint.value)


def _check_sizes(check: Checker, group: NodeGroupSpec, where: str) -> None:
    check.that(group.min >= 0, f"{where}.min", f"{group.min} is negative; the least is 0")
    check.that(
        group.min <= group.max,
        f"{where}.min",
        f"min {group.min} is greater than max {group.max}; lower min or raise max",
    )
    if group.initial is not None and group.min <= group.max:
        check.that(
            group.min <= group.initial <= group.max,
            f"{where}.initial",
            f"{group.initial} is not between min {group.min} and max {group.max}",
        )


def _check_manifests(check: Checker, scenario: Scenario, base: Path, custom: CustomKinds) -> Manifests | None:
    """Return the objects, or None where not all could be read; ``custom`` takes the kinds that they define."""
    found: Manifests = []
    whole = True
    for index, entry in enumerate(scenario.manifests):
        field = f"manifests[{index}]"
        try:
            # The text of a block begins on the line after its `|`.
            within = (str(check.path), check.line_of(field)) if check.has_lines else None
            found += manifests_in(entry, field, base, within=within, custom=custom)
        except ScenarioError as error:
            whole = False
            check.add(str(error))
    if not whole:
        return None
    found, _ = without_made(found)
    for problem in problems_in(found):
        check.that(False, "manifests", problem)
    return found


def _check_loops(check: Checker, scenario: Scenario) -> tuple[LoopEntry[Any], ...]:
    """Return the entries of the loops that there are."""
    for index, name in enumerate(scenario.loops):
        if not all(map(is_loop, expand_groups([name]))):
            check.one_of(name, loop_names(), f"loops[{index}]", "loop")
    return loop_entries(filter(is_loop, expand_groups(scenario.loops)))


def _check_flags(check: Checker, scenario: Scenario, entries: Sequence[LoopEntry[Any]]) -> None:
    for name, value in scenario.flags.items():
        try:
            parse_flags({name: value}, entries)
        except FlagError as error:
            others = _loops_with(name)
            known = others and not set(others) & {entry.name for entry in entries}
            check.that(False, f"flags[{name}]", _of_other_loops(name, others) if known else str(error))


def _loops_with(flag: str) -> list[str]:
    name = flag.removeprefix("--").replace("_", "-")
    return [entry.name for entry in loop_entries() if name in entry.flags.fields]


def _of_other_loops(flag: str, loops: Sequence[str]) -> str:
    which = (
        f"the loop {loops[0]}, which is" if len(loops) == 1 else f"the loops {', '.join(loops)}, which are"
    )
    return f"{flag} is a flag of {which} not in `loops`; add {loops[0]} there, or leave the flag out"


def _check_prices(check: Checker, scenario: Scenario) -> None:
    """An expander that compares prices needs one of every group; a group may be free, if it says so itself."""
    given = {name.removeprefix("--").replace("_", "-"): value for name, value in scenario.flags.items()}
    if not packs_all_groups(str(given.get("expander", ""))):
        return
    for index, group in enumerate(scenario.node_groups):
        own = scenario.instance_types.get(group.instance_type)
        priced = group.price_per_hour is not None or (own.price_per_hour > 0 if own else True)
        check.that(
            priced,
            f"nodeGroups[{index}].pricePerHour",
            f"group {group.name} has no price, which the expander least-cost compares; give it pricePerHour, "
            f"or its type: instanceTypes.{group.instance_type}.pricePerHour",
        )


def _check_fault(check: Checker, scenario: Scenario, fault: FaultSpec, where: str) -> None:
    check.one_of(fault.kind, FAULT_KINDS, f"{where}.kind", "fault")
    names = [group.name for group in scenario.node_groups]
    check.that(
        not names or fault.group in {"", *names},
        f"{where}.group",
        f"no node group `{fault.group}`; there are {', '.join(names)}",
    )
    check.that(
        not fault.group or fault.kind not in _WITHOUT_GROUP,
        f"{where}.group",
        f"{fault.kind} is about the API server and not about a node group; leave the group out",
    )
    check.that(0 < fault.probability <= 1, f"{where}.probability", f"{fault.probability} is not in (0, 1]")
    check.duration(fault.start, f"{where}.start")
    begins, ends = nanoseconds(fault.start), nanoseconds(scenario.duration)
    check.that(
        begins is None or ends is None or begins < ends or ends <= 0,
        f"{where}.start",
        f"{fault.start} is not before the end of the run, {scenario.duration}; lower it",
    )
    if fault.end is not None:
        start, end = nanoseconds(fault.start), nanoseconds(fault.end)
        check.duration(fault.end, f"{where}.end")
        check.that(
            start is None or end is None or start < end,
            f"{where}.end",
            f"{fault.end} is not after start {fault.start}; move one of them",
        )


def _check_show(check: Checker, scenario: Scenario) -> None:
    show = scenario.show
    if show.start is not None:
        check.parses(parse_rfc3339, show.start, "show.start")
    if show.until not in (None, NEVER):
        check.parses(parse_rfc3339, show.until, "show.until")
    check.that(
        is_speed(show.speed),
        "show.speed",
        f"{show.speed:g} must be greater than 0 and at most {MOST_SPEED:,}",
    )

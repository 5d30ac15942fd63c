"""Statuses of VPAs: recommendations as texts, and whether a status has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
import numpy as np

from kubetide.objects.base import Quantities
from kubetide.objects.vpa import (
    CONTAINER_OFF,
    ContainerPolicy,
    ContainerRecommendation,
    PodRecommendation,
    VpaStatus,
)
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.vectors import BoolVector, Int64Vector
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.targets.estimate import estimates, least_amounts, usage_of
from kubetide.vertical.recommender.targets.fitting import Fit, fit_of, fitted, sizes_beside, taken_by_others
from kubetide.vertical.recommender.targets.floors import Place
from kubetide.vertical.recommender.targets.rendering import Texts, caps_of, rounded, whole_cores
from kubetide.vertical.resources.policies import container_policy

RESOURCES = ("cpu", "memory")


class Cells(msgspec.Struct, frozen=True, eq=False):
    """Containers with a recommendation, grouped by VPA.

    Attributes:
        containers, policies, rows: By container.
        bounds: By VPA, where its containers begin, and the end of all.
    """

    containers: list[str]
    policies: list[ContainerPolicy | None]
    rows: list[tuple[int, ...]]
    bounds: list[int]


def cells_of(state: State, vpas: Sequence[Vpa]) -> Cells:
    """Return the containers whose policy is not Off, also those without samples yet."""
    cells = Cells([], [], [], [0])
    for vpa in vpas:
        for container, rows in state.cells_of(vpa):
            policy = container_policy(vpa.view.policy, container)
            if policy is not None and policy.mode == CONTAINER_OFF:
                continue
            cells.containers.append(container)
            cells.policies.append(policy)
            cells.rows.append(rows)
        cells.bounds.append(len(cells.containers))
    return cells


def recommendations(state: State, vpas: Sequence[Vpa]) -> list[PodRecommendation]:
    """Return the recommendation of each VPA, empty if nothing is known of its containers."""
    settings = state.settings
    cells = cells_of(state, vpas)
    bounds = np.array(cells.bounds, np.int64)
    sizes = bounds[1:] - bounds[:-1]
    least = least_amounts(settings, np.repeat(sizes, sizes))
    usage = usage_of(state.aggregates, cells.rows)
    texts = Texts(settings)
    found = {
        resource: _found(state, vpas, cells, resource, estimates(usage, resource, floor, settings))
        for resource, floor in zip(RESOURCES, least, strict=True)
    }
    controlled = _without_left(vpas, cells, [_controlled(policy) for policy in cells.policies])
    fit = found
    if state.sizes:
        targets = {resource: found[resource][0] for resource in RESOURCES}
        both = fitted(
            found["cpu"], found["memory"], cells.bounds, _fits(state, vpas, cells, controlled, targets)
        )
        fit = dict(zip(RESOURCES, both, strict=True))
    columns: list[tuple[list[str], ...]] = []
    for resource in RESOURCES:
        plain = caps_of(None, resource, settings)
        caps = [plain if one is None else caps_of(one, resource, settings) for one in cells.policies]
        uncapped = texts.of(resource, found[resource][0])
        bounds = np.array([[one.least for one in caps], [one.most for one in caps]], np.int64)
        first = uncapped if fit is found else texts.of(resource, fit[resource][0])
        raw = [first, *(texts.of(resource, one) for one in fit[resource][1:])]
        capped = [
            texts.capped(resource, one, text, caps, bounds.reshape(2, -1))
            for one, text in zip(fit[resource], raw, strict=True)
        ]
        columns.append((*capped, uncapped))
    made = [
        _recommendation(name, which, cpu, memory)
        for name, which, cpu, memory in zip(
            cells.containers,
            controlled,
            zip(*columns[0], strict=True),
            zip(*columns[1], strict=True),
            strict=True,
        )
    ]
    return [
        PodRecommendation(container_recommendations=tuple(made[begin:end]) or None)
        for begin, end in pairwise(cells.bounds)
    ]


def _found(
    state: State, vpas: Sequence[Vpa], cells: Cells, resource: str, amounts: Sequence[Int64Vector]
) -> list[Int64Vector]:
    """Return amounts with their floors, rounded up."""
    settings = state.settings
    if state.floors.held:
        lowest = state.floors.amounts(_places(vpas, cells, resource))
        amounts = [np.maximum(one, lowest) for one in amounts]
    factor = settings.round_cpu_millicores if resource == "cpu" else settings.round_memory_bytes
    found = [rounded(one, factor) for one in amounts]
    if resource == "cpu" and settings.cpu_integer_post_processor_enabled:
        asked = _integer_cpu(vpas, cells)
        found = [whole_cores(one, asked) for one in found]
    return found


def awaits_sizes(state: State) -> bool:
    """Return whether targets must fit nodes of which nothing is known yet: then each VPA's recommendation stays as it is."""
    return state.settings.fit_node_groups and not state.sizes


def fit_of_vpa(state: State, vpa: Vpa) -> Fit | None:
    """Return the factors that lower the targets of a VPA's containers to fit a new node; None for none."""
    if not state.sizes:
        return None
    cells = cells_of(state, [vpa])
    usage = usage_of(state.aggregates, cells.rows)
    least = least_amounts(state.settings, np.full(len(cells.rows), len(cells.rows), np.int64))
    targets = {
        resource: _found(state, [vpa], cells, resource, estimates(usage, resource, floor, state.settings))[0]
        for resource, floor in zip(RESOURCES, least, strict=True)
    }
    controlled = _without_left([vpa], cells, [_controlled(policy) for policy in cells.policies])
    [fit] = _fits(state, [vpa], cells, controlled, targets)
    return fit


def _fits(
    state: State,
    vpas: Sequence[Vpa],
    cells: Cells,
    controlled: Sequence[tuple[bool, bool]],
    targets: Mapping[str, Int64Vector],
) -> list[Fit | None]:
    """Return, by VPA, how the targets of a pod are lowered to fit a new node beside what its other containers request."""
    recommended = {
        vpa.key: {
            (cells.containers[cell], resource)
            for cell in range(begin, end)
            for resource, is_made in zip(RESOURCES, controlled[cell], strict=True)
            if is_made
        }
        for vpa, (begin, end) in zip(vpas, pairwise(cells.bounds), strict=True)
        if vpa.view.policy is not None or vpa.view.left
    }
    taken = taken_by_others(state.members, recommended)
    is_made = np.array(controlled, np.bool_).reshape(-1, 2)
    cpu, memory = (targets[resource] * is_made[:, at] for at, resource in enumerate(RESOURCES))
    return [
        fit_of(
            int(cpu[begin:end].sum()),
            int(memory[begin:end].sum()),
            sizes_beside(state.sizes, taken.get(vpa.key)),
        )
        for vpa, (begin, end) in zip(vpas, pairwise(cells.bounds), strict=True)
    ]


def _places(vpas: Sequence[Vpa], cells: Cells, resource: str) -> list[Place]:
    return [
        (*vpa.key, cells.containers[cell], resource)
        for number, vpa in enumerate(vpas)
        for cell in range(cells.bounds[number], cells.bounds[number + 1])
    ]


def _recommendation(
    name: str, which: tuple[bool, bool], cpu: Sequence[str], memory: Sequence[str]
) -> ContainerRecommendation:
    target = _quantities(which, cpu[0], memory[0])
    is_capped = cpu[0] is not cpu[3] or memory[0] is not memory[3]
    return ContainerRecommendation(
        container_name=name,
        target=target or {},
        lower_bound=_quantities(which, cpu[1], memory[1]),
        upper_bound=_quantities(which, cpu[2], memory[2]),
        # Tens of thousands of these are held: where both say the same they are one.
        uncapped_target=_quantities(which, cpu[3], memory[3]) if is_capped else target,
    )


def _integer_cpu(vpas: Sequence[Vpa], cells: Cells) -> BoolVector:
    asked = np.zeros(len(cells.containers), np.bool_)
    for number, vpa in enumerate(vpas):
        if vpa.view.integer_cpu:
            for cell in range(cells.bounds[number], cells.bounds[number + 1]):
                asked[cell] = cells.containers[cell] in vpa.view.integer_cpu
    return asked


def _controlled(policy: ContainerPolicy | None) -> tuple[bool, bool]:
    names = policy.controlled_resources if policy is not None else None
    if names is None:
        return True, True
    return "cpu" in names, "memory" in names


def _without_left(
    vpas: Sequence[Vpa], cells: Cells, controlled: list[tuple[bool, bool]]
) -> list[tuple[bool, bool]]:
    """Return which resources are recommended: those that an HPA scales on are not."""
    for number, vpa in enumerate(vpas):
        for left in vpa.view.left:
            for cell in range(cells.bounds[number], cells.bounds[number + 1]):
                cpu, memory = (
                    asked and not left.concerns(cells.containers[cell], resource)
                    for asked, resource in zip(controlled[cell], RESOURCES, strict=True)
                )
                controlled[cell] = cpu, memory
    return controlled


def _quantities(which: tuple[bool, bool], cpu: str, memory: str) -> Quantities | None:
    if which == (True, True):
        return {"cpu": cpu, "memory": memory}
    if which[0]:
        return {"cpu": cpu}
    return {"memory": memory} if which[1] else None


# ── is it new? ──────────────────────────────────────────────────────────────────────────────────


def says_the_same(one: VpaStatus, other: VpaStatus) -> bool:
    """Return whether two statuses are equal; quantities may be written differently."""
    if one == other:
        return True
    if one.observed_generation != other.observed_generation:
        return False
    if (one.conditions or ()) != (other.conditions or ()) or (one.recommendation is None) != (
        other.recommendation is None
    ):
        return False
    mine, theirs = (
        (status.recommendation and status.recommendation.container_recommendations) or ()
        for status in (one, other)
    )
    return len(mine) == len(theirs) and all(map(_same_container, mine, theirs))


def _same_container(one: ContainerRecommendation, other: ContainerRecommendation) -> bool:
    return one.container_name == other.container_name and all(
        _same_amounts(a, b)
        for a, b in (
            (one.target, other.target),
            (one.lower_bound, other.lower_bound),
            (one.upper_bound, other.upper_bound),
            (one.uncapped_target, other.uncapped_target),
        )
    )


def _same_amounts(one: Mapping[str, str | int | float] | None, other: Quantities | None) -> bool:
    one, other = one or {}, other or {}
    try:
        return one.keys() == other.keys() and all(
            value == other[name] or Quantity.parse(value) == Quantity.parse(other[name])
            for name, value in one.items()
        )
    except QuantityError:
        return False

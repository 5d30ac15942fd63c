"""Which tests a worker of pytest-xdist plays one after another, and which begin first.

A control plane starts in some seconds and takes CPU as long as it runs, and a fixture of a module is made anew by
each worker that plays tests of it. So the tests that share a plane are one group, and else those of one module; where
single tests take long they are dealt out one by one. Groups that wait or take long begin first.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

PLANES_OF = {
    "audited": (
        "tests/plane/test_capture.py",
        "tests/plane/test_device_nodes.py",
        "tests/plane/test_elastic.py",
        "tests/plane/test_hpa_prometheus.py",
        "tests/plane/test_hpa_walks.py",
        "tests/plane/test_living_nodes.py",
        "tests/plane/test_nominations.py",
        "tests/plane/test_scaled_object.py",
        "tests/plane/test_whole_loop.py",
    ),
    "audited, for nodes by kwok": (
        "tests/plane/test_aws.py",
        "tests/plane/test_capacity.py",
        "tests/plane/test_kwok.py",
        "tests/plane/test_kwok_provider.py",
    ),
    "plane": (
        "tests/plane/test_battery.py",
        "tests/plane/test_vpa_modes.py",
    ),
    "quiet_plane": (
        "tests/clients/test_go_client.py",
        "tests/clients/test_python_client.py",
        "tests/deploy/test_access.py",
        "tests/deploy/test_chart.py",
        "tests/plane/test_custom_kinds.py",
        "tests/plane/test_dashboard_access.py",
        "tests/plane/test_device_rules.py",
        "tests/plane/test_election.py",
        "tests/plane/test_exclusion.py",
        "tests/plane/test_handover.py",
        "tests/plane/test_informers.py",
        "tests/plane/test_lists.py",
        "tests/plane/test_match_conditions.py",
        "tests/plane/test_plane.py",
        "tests/plane/test_protobuf.py",
        "tests/plane/test_storage_rules.py",
        "tests/plane/test_twins.py",
        "tests/plane/test_webhooks.py",
    ),
}
"""By the fixture of a plane, the modules that use it; none uses two, as a plane ends with its group.

What takes longest is parted into two groups: two workers then start a plane of that kind each.
"""

_ONE_BY_ONE = (
    "tests/bad_input/",
    "tests/cli/",
    "tests/cluster/test_kubectl.py",
    "tests/conformance/",
    "tests/embedded/store/test_determinism.py",
    "tests/scheduling/test_estimator.py",
    "tests/simulate/test_needless_nodes.py",
    "tests/simulate/test_runs.py",
    "tests/soak/",
)
"""How the ids of tests begin that take long, and share nothing."""

_WAITING = (
    "audited",
    "audited, for nodes by kwok",
    "tests/plane/test_scheduling.py",
    "quiet_plane",
    "plane",
    "tests/plane/",
)
"""How the names of groups begin that mostly wait for a control plane, the longest first."""


def group_of(nodeid: str) -> str:
    """Return the name of the group of tests that one worker plays with this one."""
    module = nodeid.partition("::")[0]
    for plane, modules in PLANES_OF.items():
        if module in modules:
            return plane
    return nodeid if nodeid.startswith(_ONE_BY_ONE) else module


def put_in_order(items: list[pytest.Item]) -> None:
    """Put the tests of a group side by side, and the groups that take long first; else the order stays.

    Two groups that wait for a control plane begin; the others come one by one between groups that compute, so that
    neither all workers wait nor all compute.
    """
    groups = [group_of(item.nodeid) for item in items]
    place = {group: at for at, group in reversed(list(enumerate(groups)))}
    rank = {group: (_rank(group, item), place[group]) for group, item in zip(groups, items, strict=True)}
    ordered = sorted(rank, key=rank.__getitem__)
    waiting = [group for group in ordered if rank[group][0] < len(_WAITING)]
    computing = ordered[len(waiting) :]
    dealt = waiting[:2]
    long = sum(group.startswith(_ONE_BY_ONE) for group in computing)
    each = max(long // max(len(waiting) - 1, 1), 1)
    for at, group in enumerate(waiting[2:]):
        dealt += [*computing[at * each : (at + 1) * each], group]
    dealt += computing[max(len(waiting) - 2, 0) * each :]
    order = {group: at for at, group in enumerate(dealt)}
    items.sort(key=lambda item: order[group_of(item.nodeid)])


def _rank(group: str, item: pytest.Item) -> int:
    """Return the place in ``_WAITING``; the other groups follow: long single tests first, then slow ones."""
    for rank, name in enumerate(_WAITING):
        if group == name or (name.endswith("/") and group.startswith(name)):
            return rank
    if group.startswith(_ONE_BY_ONE):
        return len(_WAITING)
    return len(_WAITING) + 1 + (item.get_closest_marker("slow") is None)


class Grouped(LoadScopeScheduling):
    """Deals out groups in the order of the tests."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


class _Planes:
    """The planes that run in this worker."""

    def __init__(self) -> None:
        self._running = ExitStack()

    def begin(self, starting: AbstractContextManager[Any]) -> Any:
        """Start a plane that runs to the end of the group, and return it."""
        return self._running.enter_context(starting)

    def end(self) -> None:
        """Stop all."""
        self._running.close()


PLANES = _Planes()

"""Devices given, taken back and tried out, against plain rules over lists that try everything."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import PodResourceClaim
from kubetide.objects.resource import (
    CelSelector,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubetide.scheduling import ClusterFacts, Devices, Limits, PodGroup, Snapshot, classify, estimate

NODES = ("n0", "n1", "n2")
CLAIMS = ("c0", "c1", "c2", "c3")
EVERYWHERE = "net"

pools = st.fixed_dictionaries(
    {EVERYWHERE: st.lists(st.sampled_from("AB"), max_size=3)},
    optional={name: st.lists(st.sampled_from("AB"), min_size=1, max_size=3) for name in NODES},
)
"""The models of the devices of each pool; a pool is a node's own or everywhere."""

requests = st.lists(
    st.tuples(st.sampled_from((1, 1, 1, 1, 2, "All")), st.sampled_from((None, None, "A", "B"))),
    min_size=1,
    max_size=2,
)
claims = st.fixed_dictionaries({name: st.tuples(requests, st.booleans()) for name in CLAIMS})
"""By name: how many of which model each request needs, and whether all must be of one model."""

uses = st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True)
on = st.tuples(st.just("on"), st.sampled_from(("p0", "p1", "p2")), uses, st.sampled_from(NODES))
off = st.tuples(st.just("off"), st.sampled_from(("p0", "p1", "p2")))
trying = st.sampled_from((("fork",), ("revert",), ("commit",)))
relabel = st.tuples(st.just("relabel"), st.sampled_from(NODES), st.sampled_from("xy"))
steps = st.lists(st.one_of(on, on, on, off, off, trying, relabel), min_size=4, max_size=16)


# ── Objects ──


def make_slice(pool, models):
    where = {"all_nodes": True} if pool == EVERYWHERE else {"node_name": pool}
    devices = tuple(
        Device(name=f"d{at}", attributes={"model": DeviceAttribute(string_value=model)})
        for at, model in enumerate(models)
    )
    spec = ResourceSliceSpec(
        driver="a.com",
        pool=ResourcePool(name=pool, generation=1, resource_slice_count=1),
        devices=devices,
        **where,
    )
    return ResourceSlice(metadata=ObjectMeta(name=f"slice-{pool}"), spec=spec)


def make_claim(name, claims, one_model):
    made = []
    for at, (count, model) in enumerate(claims):
        expression = f'device.attributes["a.com"].model == "{model}"'
        exactly = ExactDeviceRequest(
            device_class_name="any",
            allocation_mode="All" if count == "All" else "ExactCount",
            count=0 if count == "All" else count,
            selectors=(DeviceSelector(cel=CelSelector(expression=expression)),) if model else None,
        )
        made.append(DeviceRequest(name=f"r{at}", exactly=exactly))
    constraints = (DeviceConstraint(match_attribute="a.com/model"),) if one_model else None
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(made), constraints=constraints))
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def make_user(name, names):
    used = tuple(PodResourceClaim(name=one, resource_claim_name=one) for one in names)
    return make_pod(name, resource_claims=used)


def make_snapshot(offered, claims):
    snapshot = Snapshot()
    devices = Devices(
        slices=tuple(make_slice(pool, models) for pool, models in offered.items() if models),
        claims={("default", name): make_claim(name, *one) for name, one in claims.items()},
        classes={"any": DeviceClass(metadata=ObjectMeta(name="any"))},
    )
    snapshot.set_facts(ClusterFacts(devices=devices))
    for name in NODES:
        snapshot.set_node(make_node(name))
    return snapshot


# ── The plain rules ──


class Book:
    """The users and the devices of each claim."""

    def __init__(self, offered, claims):
        self.claims = claims
        self.models = {
            ("a.com", pool, f"d{at}"): m for pool, of in offered.items() for at, m in enumerate(of)
        }
        self.users = {name: set() for name in CLAIMS}
        self.held = {}

    def copy(self):
        made = Book({}, self.claims)
        made.models, made.held = self.models, dict(self.held)
        made.users = {name: set(users) for name, users in self.users.items()}
        return made

    def reachable(self, node):
        return [device for device in sorted(self.models) if device[1] in {node, EVERYWHERE}]

    def ways(self, node, name, taken):
        """All sets of free devices that meet a claim on a node; of a request for all of them there is one."""
        claims, one_model = self.claims[name]
        found = [()]
        for count, model in claims:
            matching = [d for d in self.reachable(node) if model is None or self.models[d] == model]
            if count == "All":
                options = [tuple(matching)] if matching else []
            else:
                options = list(combinations(matching, count))
            found = [
                (*before, *option)
                for before in found
                for option in options
                if not {*before, *taken} & set(option)
            ]
        return [way for way in found if not one_model or len({self.models[d] for d in way}) <= 1]

    def can_have(self, node, names, taken=None):
        taken = {d for held in self.held.values() for d in held} if taken is None else taken
        if not names:
            return True
        ways = self.ways(node, names[0], taken)
        return any(self.can_have(node, names[1:], taken | set(way)) for way in ways)

    def fits(self, node, names):
        if not all(device[1] in {node, EVERYWHERE} for one in names for device in self.held.get(one, ())):
            return False
        return self.can_have(node, [one for one in names if one not in self.held])

    def says_error(self, node, names):
        """Whether upstream would report a constraint that excludes a request from all devices, instead of refusing."""
        return any(
            self.claims[one][1] and any(count == "All" for count, _ in self.claims[one][0])
            for one in names
            if one not in self.held
        )


def check(snapshot, book, names):
    pod_class = classify(make_user("asker", names))
    fits = snapshot.feasible(pod_class).tolist()
    open_to_all = np.zeros(len(fits), np.bool_)
    for start in range(len(fits)):
        in_turn = [*range(start, len(fits)), *range(start)]
        first = next((row for row in in_turn if fits[row]), -1)
        assert snapshot.first_fit(pod_class, start, open_to_all) == first
    for node, found in zip(snapshot.node_names, fits, strict=True):
        claims = book.fits(node, names)
        # An unmet constraint on "all" ends upstream's search with an error although other ways may be left.
        assert found == claims or (claims and book.says_error(node, names))


def put_on(snapshot, book, pod, names, node):
    for name in names:
        book.users[name].add(pod)
    free = [name for name in names if name not in book.held]
    taken = {d for held in book.held.values() for d in held}
    snapshot.add_pod(make_user(pod, names), node)
    for name in free:
        held = snapshot.devices.held(("default", name))
        got = tuple(taking.device for taking in held.takings)
        assert sorted(got) in [sorted(way) for way in book.ways(node, name, taken)]
        taken |= set(got)
        book.held[name] = got


def take_off(snapshot, book, pod):
    snapshot.remove_pod(("default", pod))
    for name, users in book.users.items():
        if pod in users:
            users.discard(pod)
            if not users:
                book.held.pop(name, None)


@settings(max_examples=150, deadline=None)
@given(pools, claims, steps, st.lists(uses, min_size=1, max_size=2))
def test_devices_are_had_where_a_full_search_finds_them(offered, claims, changes, asked):
    """Every node's verdict is that of trying all ways; what is given is one of them, and comes back."""
    snapshot, book, saved, where = make_snapshot(offered, claims), Book(offered, claims), [], {}
    for change in changes:
        match change:
            case ("on", pod, names, node):
                if pod not in where and snapshot.fits(classify(make_user(pod, names)), node):
                    put_on(snapshot, book, pod, names, node)
                    where = {**where, pod: node}
            case ("off", pod):
                take_off(snapshot, book, pod)
                where = {key: node for key, node in where.items() if key != pod}
            case ("fork",):
                snapshot.fork()
                saved.append((book.copy(), where))
            case ("revert",) if saved:
                snapshot.revert()
                book, where = saved.pop()
            case ("relabel", node, value):
                snapshot.set_node(make_node(node, labels={"team": value}))
            case ("commit",) if saved:
                snapshot.commit()
                saved.pop()
        for names in asked:
            check(snapshot, book, names)
    in_use = {d for held in book.held.values() for d in held}
    assert set(snapshot.devices.in_use.devices) == in_use


def test_an_estimate_gives_each_pod_its_own_devices():
    """Three devices in the network serve three of five pods, on as many nodes as their other requests need."""
    claims = {f"c{number}": ([(1, None)], False) for number in range(5)}
    snapshot = make_snapshot({EVERYWHERE: ["A", "A", "B"]}, claims)
    pods = tuple(
        make_pod(
            f"p{n}",
            {"cpu": "1500m"},
            resource_claims=(PodResourceClaim(name="x", resource_claim_name=f"c{n}"),),
        )
        for n in range(5)
    )
    found = estimate(snapshot, make_node("template"), [], [PodGroup(pods, classify(pods[0]))], Limits())
    assert (found.nodes, [len(one) for one in found.scheduled]) == (2, [3])
    assert not snapshot.devices.in_use.devices

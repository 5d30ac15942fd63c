"""Providers of all vendors while one thing after another goes wrong at the edge of the cloud: what must hold always.

A life is some ticks of a loop: it looks, orders, withdraws and deletes; meanwhile one fault spoils some of the answers.
What no provider can see is stated in ``UNSEEN``: an entry that lost its name, and a list that ends early without
saying so, as those of Compute Engine and Azure do not count their entries. Looks then lack machines until the fault is
over; a decrease still ends none. Nor can it see that an answer is of minutes ago: no decrease is tried on such.
"""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clouds.faults import BODIES, CHANGES, LOST, STATUSES, WORLD, Fault, Faulty, answer_or_error
from tests.clouds.vendors import ALL, Azure, Gce

from kubetide.units.time import Duration, after, minutes, seconds

PLACES = ALL | {
    "azure, flexible": partial(Azure, flexible=True),
    "azure, spot": partial(Azure, spot=True),
    "gce, in bulk": partial(Gce, bulk=True),
}
UNSEEN = {"drop", "null", "list", "object"}
"""Changes of an answer after which a list may lack entries without saying so."""
BOUNDS = {"web": (0, 4), "system": (1, 3), "workers": (2, 2)}

_SHAPES = {"drop", "null", "text", "list", "object"}
_NEVER = {"aws": {*_SHAPES, "in two"}, "externalgrpc": _SHAPES}
"""Changes of an answer that boto3 and protobuf, which know its shape, never make; an instance of AWS has one group."""


def faults(place):
    """Return what may go wrong at the edge of a cloud."""
    kinds = ("status", *LOST, *BODIES, *CHANGES, *WORLD)
    return st.builds(
        Fault,
        kind=st.sampled_from([one for one in kinds if one not in _NEVER.get(place, ())]),
        first=st.integers(0, 9),
        times=st.sampled_from((1, 2, 6, 100)),
        at=st.floats(0, 1, exclude_max=True),
        status=st.sampled_from(STATUSES),
        retry_after=st.sampled_from(("", "0", "5", "99999999", "soon")),
    )


steps = st.tuples(
    st.sampled_from(("look", "look", "wait", "increase", "decrease", "delete")),
    st.sampled_from(tuple(BOUNDS)),
)


def _ends(ids):
    return [one.rpartition("/")[2] for one in ids]


class Skewed:
    """A clock that is wrong by some time."""

    def __init__(self, clock, wrong):
        self._clock, self._wrong = clock, wrong
        self.monotonic, self.sleep = clock.monotonic, clock.sleep

    def now(self):
        return after(self._clock.now(), self._wrong)


class Life:
    """A provider, its vendor's fake, and what it may have done.

    What happens to the world between a question and an order can no provider know: a size may then pass its bound by
    one, until the provider looks again.
    """

    def __init__(self, place, fault, page, wrong):
        here = self.here = PLACES[place](page=page).named()
        self.names = {one: getattr(here, one) for one in BOUNDS}
        for name, running in (("web", 1), ("system", 2), ("workers", 2)):
            here.fleet.add(self.names[name], running=running)
        self.groups = {one: here.fleet.groups[self.names[one]] for one in BOUNDS}
        here.clock = Skewed(here.clock, wrong)
        here.named(*((self.names[one], *bounds) for one, bounds in BOUNDS.items()))
        self.faulty = here.send = Faulty(here.send, here.clock, most=150)
        self.cloud, self.fault, self.deleted, self.unanswered = here.connect(), fault, set(), set()
        self.guests = []
        self.sees_all, self.shown = fault.kind not in UNSEEN, {one: set() for one in BOUNDS}
        self.slack, self.faulty.happen = int(fault.kind in WORLD), partial(self.happen, fault)

    def happen(self, fault):
        """Let others do to a group what the fault says."""
        name = sorted(BOUNDS)[int(fault.at * len(BOUNDS))]
        own, group, fleet = self.names[name], self.groups[name], self.here.fleet
        one = next(iter(sorted(self.running(name))), None)
        match fault.kind:
            case "grown" if group.target < BOUNDS[name][1]:
                fleet.grow(own, 1)
            case "shrunk" if one and group.target > BOUNDS[name][0]:
                self.deleted.add(one)
                fleet.end(own, one)
            case "replaced" if one:
                self.deleted.add(one)
                fleet.end(own, one)
                fleet.grow(own, 1)
            case "in two":
                self.guests = group.machines[:1]
                self.groups["web" if name != "web" else "system"].machines += self.guests
            case "deleted":
                del fleet.groups[own]

    def heal(self):
        """End the fault, and undo what cannot last."""
        self.faulty.set(None)
        for name, group in self.groups.items():
            self.here.fleet.groups[self.names[name]] = group
            group.machines = [
                one for number, one in enumerate(group.machines) if one not in self.guests or not number
            ]

    def running(self, name):
        now = self.here.clock.monotonic()
        there = [one for one in self.groups[name].machines if one.ends_at is None and one.shown_from <= now]
        return {one.name for one in there}

    def target(self, name):
        return self.groups[name].target

    def ends(self, name, machines):
        """Return the last parts of the provider ids of machines: those before it name a flexible set, or none."""
        return {*_ends(self.here.node_id(self.names[name], one) for one in machines)}

    def view(self, groups, name):
        return next((one for one in groups if one.id == self.here.id_of(self.names[name])), None)

    async def call(self, call):
        """Return the answer of a call, or its error; any error but a CloudError, or too many requests, are defects."""
        self.faulty.begin()
        return await answer_or_error(call)

    async def look(self, _name):
        groups, _ = await self.call(self.cloud.refresh())
        for name in BOUNDS if groups is not None else ():
            group = self.view(groups, name)
            assert group is not None, f"{name} vanished"
            ids = _ends(one.provider_id for one in group.instances or ())
            assert len(ids) == len(set(ids))
            if self.sees_all and not group.stale:
                expected = self.shown[name] & self.ends(name, self.running(name))
                assert expected <= {*ids}, f"machines of {name} count as gone"
            self.shown[name] = {*ids}

    async def wait(self, _name):
        await self.here.clock.sleep(seconds(70))

    async def increase(self, name):
        before = self.target(name)
        _, error = await self.call(self.cloud.increase_size(self.here.id_of(self.names[name]), 1))
        # An order that was taken without an answer may be what the next one asks for.
        if error:
            self.unanswered.add(name)
        expected = {before + 1, *((before,) if name in self.unanswered else ())}
        # An order on an old size may be for none, or for those that were deleted since.
        assert self.fault.kind == "again" or self.is_one_of(expected, name)

    def is_one_of(self, expected, name):
        """Return whether a size is as expected, or as the world has made it."""
        return any(abs(self.target(name) - one) <= self.slack for one in expected)

    async def decrease(self, name):
        before = self.target(name)
        if self.fault.kind != "again":
            await self.call(self.cloud.decrease_target_size(self.here.id_of(self.names[name]), 1))
        assert self.is_one_of({before, before - 1}, name)

    async def delete(self, name):
        before = self.target(name)
        for one in sorted(self.running(name))[:1]:
            self.deleted.add(one)
            node = self.here.node_id(self.names[name], one)
            await self.call(self.cloud.delete_nodes(self.here.id_of(self.names[name]), [node]))
        assert self.is_one_of({before, before - 1}, name)

    def check(self):
        """Check what holds after each step."""
        for name, (least, most) in BOUNDS.items():
            assert least - self.slack <= self.target(name) <= most + self.slack, (
                f"{name} has size {self.target(name)}"
            )
            for one in self.groups[name].machines:
                is_order = one.ends_at is not None and one.ends_at < one.shown_from
                assert one.ends_at is None or is_order or one.name in self.deleted, f"{one.name} was ended"

    async def recovered(self):
        """Look when all lists have grown old: everything is as it is in the cloud."""
        await self.here.clock.sleep(minutes(20))
        groups, error = await self.call(self.cloud.refresh())
        assert groups is not None, error
        for name, bounds in BOUNDS.items():
            group = self.view(groups, name)
            assert (group.stale, group.target_size) == ("", self.target(name))
            assert (group.min_size, group.max_size) == bounds
            assert {*_ends(one.provider_id for one in group.instances)} == self.ends(name, self.running(name))


@pytest.mark.parametrize("place", PLACES)
def test_faults_at_the_edge_of_a_cloud(place):
    """Each call ends in an answer or a CloudError, sizes keep their bounds, nothing is ordered twice, and all recovers."""

    @settings(max_examples=200, deadline=None)
    @given(
        fault=faults(place),
        steps=st.lists(steps, min_size=1, max_size=6),
        page=st.sampled_from((1, 2, 500)),
        begun=st.booleans(),
        wrong=st.sampled_from((Duration(0), minutes(4), Duration(-minutes(4)))),
    )
    def lives(fault, steps, page, begun, wrong):
        life = Life(place, fault, page, wrong)

        async def main():
            if begun:
                await life.look("")
                await life.wait("")
            life.faulty.set(fault)
            for step, name in steps:
                await getattr(life, step)(name)
                life.check()
            life.heal()
            await life.recovered()

        asyncio.run(main())

    lives()

"""Machines that take much longer than others of their group (`--replace-late-nodes`); off by default."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pod, pods

from kubetide.nodes.decision import DeleteInstances, IncreaseSize
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.memory import GroupLearned, Learned, TimeTaken
from kubetide.ports.cloud import GroupOptions, Instance
from kubetide.units.time import after, format_rfc3339, hours, minutes, seconds

NOT_READY = {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
ONE_MINUTE = (minutes(1),)


class Machines(World):
    """A world whose cloud makes a machine at each request: m1, m2, and so on, none of which registers by itself."""

    made = 0

    def _do(self, action):
        outcome = super()._do(action)
        if isinstance(action, IncreaseSize) and outcome.status == "ok":
            for _ in range(action.delta):
                self.made += 1
                known = self.groups[action.group].instances or ()
                self.change(action.group, instances=(*known, Instance(provider_id=f"cloud:///m{self.made}")))
        return outcome

    def registered(self, name, **fields):
        return node(name, created=format_rfc3339(after(START, fields.pop("at"))), **fields)

    def codes(self):
        return [one.code for one in self.reasons]


def before(*took):
    """Return the times of machines that came at the start of the story."""
    return tuple(TimeTaken(START, one) for one in took)


def took_to_register(world):
    return [one.took for one in world.state.memory.register_times["g"]]


def waiting(count=1, *, took=ONE_MINUTE, settings=None, **fields):
    """Return a world whose pods have bought a node each, in a group whose machines took so long to register before."""
    world = Machines(
        pods=pods("p", count, cpu="3"),
        groups=[group("g", **fields)],
        settings={"replace_late_nodes": True, **(settings or {})},
    )
    if took:
        world.state.memory.register_times["g"] = before(*took)
    assert world.increases() == {"g": count}
    world.tick(at=seconds(10))
    return world


def first_increase(world, *, until):
    """Tick every ten seconds; return the seconds at which a group grows again, and by how much, or None."""
    for at in range(20, until, 10):
        if found := world.increases(at=seconds(at)):
            return at, found
    return None


def test_a_machine_that_takes_longer_than_others_did_is_replaced():
    """It is late after three minutes, where others took one: one more is asked for, and it is not deleted."""
    world = waiting()
    assert first_increase(world, until=400) == (200, {"g": 1})
    assert world.messages("NodeLate") == [
        "Node group g: machine cloud:///m1 is late: it has not registered for 3m10s, the one before took 1m0s"
    ]
    assert "UnregisteredRemoved" not in world.codes()
    assert world.increases(at=seconds(210)) == {}


def test_by_default_it_is_waited_for():
    """As upstream, nothing else is asked for before --max-node-provision-time is over."""
    world = waiting(settings={"replace_late_nodes": False})
    assert first_increase(world, until=900) is None
    assert "MachineLate" not in world.codes()
    assert world.state.memory.late == {}


def test_slow_machines_are_given_twice_the_time_of_the_slowest():
    world = waiting(took=(seconds(40), minutes(4), seconds(60)))
    assert first_increase(world, until=900) == (500, {"g": 1})
    assert world.messages("NodeLate") == [
        "Node group g: machine cloud:///m1 is late: it has not registered for 8m10s, the slowest of the last 3 took 4m0s"
    ]


def test_where_no_machine_was_ever_seen_to_register_none_is_late():
    assert first_increase(waiting(took=()), until=900) is None


def test_none_is_late_after_it_is_given_up():
    """Where twice the slowest is more than --max-node-provision-time, that time alone counts."""
    assert first_increase(waiting(took=(minutes(8),)), until=900) is None


def test_a_group_of_zero_or_all_waits_for_its_machines():
    """One of its machines cannot be replaced alone."""
    options = GroupOptions(zero_or_max_node_scaling=True)
    world = waiting(count=2, maximum=2, options=options)
    assert first_increase(world, until=900) is None


def test_the_maximum_of_the_group_holds():
    """A late machine takes up its place until it is given up."""
    world = waiting(maximum=1)
    assert first_increase(world, until=900) is None
    assert world.codes().count("MachineLate") == 1


def test_machines_of_one_request_are_replaced_together():
    """Two that are late at once say no more about the group than one: it is not backed off."""
    world = waiting(count=2)
    assert first_increase(world, until=400) == (200, {"g": 2})
    assert world.state.memory.backoff == {}


def test_only_the_late_one_is_replaced():
    """The one that has come counts, and how long it took is remembered."""
    world = waiting(count=2)
    world.tick(at=seconds(80), nodes=(world.registered("m1", at=seconds(80)),))
    assert took_to_register(world) == [seconds(60), seconds(70)]
    assert first_increase(world, until=400) == (200, {"g": 1})


def test_the_group_is_backed_off_when_the_replacement_is_late_too():
    """The second time another group is asked, if there is one; here the pod waits for the end of the backoff."""
    world = waiting()
    assert first_increase(world, until=400) == (200, {"g": 1})
    for at in range(210, 420, 10):
        assert world.increases(at=seconds(at)) == {}
    entry = world.state.memory.backoff["g"]
    assert (entry.error_code, entry.until) == ("late", after(START, seconds(400) + minutes(5)))
    assert world.increases(at=seconds(700)) == {"g": 1}


def test_a_late_machine_that_comes_after_all_is_used():
    """Its pods fit on it; how long it took counts from then on."""
    world = waiting()
    assert first_increase(world, until=400) == (200, {"g": 1})
    world.tick(at=seconds(210), nodes=(world.registered("m1", at=seconds(210)),))
    assert world.state.memory.late == {}
    assert took_to_register(world) == [seconds(60), seconds(200)]
    assert first_increase(world, until=900) is None


def test_a_late_machine_is_deleted_when_its_time_is_over():
    """After --max-node-provision-time it goes, as any other; the time to its going is not how long nodes take to join."""
    world = waiting()
    assert first_increase(world, until=400) == (200, {"g": 1})
    world.tick(at=seconds(270), nodes=(world.registered("m2", at=seconds(270)),))
    actions = world.tick(at=seconds(920))
    assert DeleteInstances("g", ("cloud:///m1",), "unregistered") in actions
    world.tick(at=seconds(930))
    world.tick(at=seconds(940))
    assert world.state.memory.scale_up_requests == {}
    assert world.state.memory.join_times == {}
    assert world.state.memory.late == {}


def test_a_node_that_stays_not_ready_is_late_too():
    """The slowest of its group was ready after 40 seconds; what is learned of that outlives the process."""
    world = waiting()
    world.state.memory.learned = Learned(
        groups={"g": GroupLearned(joins=3, starts=before(seconds(40), seconds(30)))}
    )
    world.tick(at=seconds(60), nodes=(world.registered("m1", at=seconds(60), ready=False, spec=NOT_READY),))
    assert first_increase(world, until=400) == (250, {"g": 1})
    assert world.messages("NodeLate") == [
        "Node group g: node m1 is late: it is not ready 3m10s after it was created, the slowest of the last 2 took 40s"
    ]


def started(world, name, *, at, took):
    """Let a node join the group that is created then and ready so much later, and be gone after that."""
    created, ready = (format_rfc3339(after(START, one)) for one in (at, at + took))
    first = node(name, created=created, ready=False, spec=NOT_READY)
    world.change("g", instances=(Instance(provider_id=f"cloud:///{name}"),))
    world.tick(at=at, nodes=(first,))
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ready}]}
    world.tick(at=at + took, nodes=(node(name, created=created, status=status),))
    world.tick(at=at + took + seconds(70))
    world.change("g", instances=())
    world.tick(at=at + took + minutes(2), gone_nodes=(name,))


@pytest.mark.parametrize(
    ("quick", "every", "limit"),
    [
        (0, hours(1), None),
        (9, hours(1), None),
        (10, hours(1), seconds(190)),
        (1, hours(6 * 24), None),
        (1, hours(8 * 24), seconds(190)),
    ],
)
def test_one_slow_start_counts_for_a_while(quick, every, limit):
    """One start of 8 minutes keeps nodes from being late until ten others came after it, or a week has passed."""
    world = Machines(groups=[group("g")], settings={"replace_late_nodes": True})
    started(world, "slow", at=seconds(0), took=minutes(8))
    for turn in range(1, quick + 1):
        started(world, f"quick-{turn}", at=turn * every, took=seconds(40))
    at = (quick + 1) * every
    world.change("g", target_size=1, instances=(Instance(provider_id="cloud:///n"),))
    world.tick(at=at, nodes=(world.registered("n", at=at, ready=False, spec=NOT_READY),))
    late = [waited for waited in range(10, 900, 10) if _is_late(world, at + seconds(waited))]
    assert (seconds(late[0]) if late else None) == limit


def _is_late(world, at):
    world.tick(at=at)
    return "n" in world.state.memory.late.get("g", {})


def test_explanations_name_a_late_machine():
    """Also without the flag: the pod that waits, and the group, say which machine is late."""
    world = waiting(settings={"replace_late_nodes": False})
    world.tick(at=minutes(5))
    late = "machine cloud:///m1 is late: it has not registered for 4m50s, the one before took 1m0s"
    assert late in explain_pod(world.state, ("default", "p-0"), world.now).sentence
    assert late in explain_group(world.state, "g", world.now).arrival


def test_another_group_gets_the_pods_where_the_first_is_backed_off():
    """Both machines of the first group are late: the third comes from the second group."""
    world = Machines(
        pods=[pod("p", cpu="3")],
        groups=[group("a"), group("b", maximum=0)],
        settings={"replace_late_nodes": True, "expander": "least-waste"},
    )
    world.state.memory.register_times["a"] = before(seconds(60))
    assert world.increases() == {"a": 1}
    world.tick(at=seconds(10))
    assert first_increase(world, until=400) == (200, {"a": 1})
    world.groups["b"] = replace(world.groups["b"], max_size=5)
    world.tick(at=seconds(210))
    found = [(at, got) for at in range(220, 500, 10) if (got := world.increases(at=seconds(at)))]
    assert found[0] == (400, {"b": 1})

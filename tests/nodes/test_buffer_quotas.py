"""ResourceQuotas limit CapacityBuffers: which pods they count, how many they leave, and whose turn it is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, convert
from tests.nodes.requests import buffer, conditions_of, pod_template, resource_quota, world

from kubetide.nodes.capacity.buffers.quotas import QuotaReservations
from kubetide.nodes.entry import ENTRY
from kubetide.nodes.explain.buffers import explain_buffer
from kubetide.nodes.facts.capacity import CapacityChanges, kinds_read, slim_capacity
from kubetide.nodes.facts.template_pods import with_default_requests
from kubetide.nodes.settings import Settings
from kubetide.objects.capacity import CapacityBufferStatus, LocalReference
from kubetide.objects.kinds import RESOURCE_QUOTAS
from kubetide.objects.pod import Pod
from kubetide.units.time import minutes, seconds

HIGH = {"priorityClassName": "high-priority"}
ELSEWHERE = {"labelSelector": {}, "namespaces": ["other"], "topologyKey": "kubernetes.io/hostname"}
ANYWHERE = {"labelSelector": {}, "namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"}
HERE = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
REQUIRED, PREFERRED = (f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred"))
ONE_CORE = {"cpu": "1", "memory": "1Gi"}


def pod_of(requests=None, *, limits=None, **spec):
    containers = [{"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}}]
    pod = convert({"metadata": {"namespace": "default"}, "spec": {"containers": containers, **spec}}, Pod)
    return replace(pod, spec=with_default_requests(pod.spec))


def near(term, rule=REQUIRED, kind="podAffinity"):
    return {"affinity": {kind: {rule: [{"podAffinityTerm": term}] if rule == PREFERRED else [term]}}}


def shared_out(quotas, *asked):
    """Return for each (pod, count) in turn how many it gets, and the quotas that leave fewer."""
    reservations = QuotaReservations({"default": quotas})
    taken = [reservations.take(pod, count) for pod, count in asked]
    return [(allowed, [one.quota.metadata.name for one in limits]) for allowed, limits in taken]


CPU_2 = {"cpu": "2"}
BASE = resource_quota("quota", {"cpu": "10", "memory": "10Gi"}, {"cpu": "0", "memory": "0"})
CORE, GPU = pod_of({"cpu": "1"}), pod_of({"nvidia.com/gpu": "1"})


@pytest.mark.parametrize(
    ("quotas", "asked", "found"),
    [
        pytest.param([], [(CORE, 5)], [(5, [])], id="no quotas"),
        pytest.param([BASE], [(pod_of(ONE_CORE), 5)], [(5, [])], id="fits"),
        pytest.param(
            [BASE],
            [(pod_of(ONE_CORE), 5), (pod_of(ONE_CORE), 10)],
            [(5, []), (5, ["quota"])],
            id="the second gets what the first leaves",
        ),
        pytest.param(
            [resource_quota("q", {"cpu": "10"}, {"cpu": "8"})], [(CORE, 5)], [(2, ["q"])], id="what is used"
        ),
        pytest.param(
            [
                resource_quota("q1", {"cpu": "5"}, {"cpu": "4"}),
                resource_quota("q2", {"cpu": "10"}, {"cpu": "8"}),
            ],
            [(CORE, 5)],
            [(1, ["q1", "q2"])],
            id="two quotas of one resource",
        ),
        pytest.param(
            [resource_quota("q", {"requests.cpu": "10"}, {"requests.cpu": "8"})],
            [(CORE, 5)],
            [(2, ["q"])],
            id="by the longer name",
        ),
        pytest.param(
            [resource_quota("q", {"requests.cpu": "2"})],
            [(pod_of(limits={"cpu": "1"}), 5)],
            [(2, ["q"])],
            id="a limit is a request too",
        ),
        pytest.param(
            [resource_quota("q", CPU_2, scopes=["Terminating"])], [(CORE, 5)], [(5, [])], id="terminating"
        ),
        pytest.param(
            [resource_quota("q", CPU_2, scopes=["NotTerminating"])],
            [(CORE, 5)],
            [(2, ["q"])],
            id="not terminating",
        ),
        pytest.param(
            [resource_quota("q", {"requests.nvidia.com/gpu": "2"}, scopes=["BestEffort"])],
            [(GPU, 5)],
            [(2, ["q"])],
            id="devices without cpu and memory are best effort",
        ),
        pytest.param(
            [resource_quota("q", CPU_2, scopes=["BestEffort"])], [(CORE, 5)], [(5, [])], id="burstable"
        ),
        pytest.param(
            [resource_quota("q", CPU_2, expressions=[("PriorityClass", "In", ["high-priority"])])],
            [(CORE, 5), (pod_of({"cpu": "1"}, **HIGH), 5)],
            [(5, []), (2, ["q"])],
            id="a pod out of scope reserves nothing",
        ),
        pytest.param(
            [resource_quota("cpu", CPU_2), resource_quota("memory", {"memory": "2Gi"})],
            [(CORE, 5), (pod_of({"memory": "1Gi"}), 5)],
            [(2, ["cpu"]), (2, ["memory"])],
            id="each by its own quota",
        ),
        pytest.param(
            [resource_quota("q", CPU_2, scopes=["CrossNamespacePodAffinity"])],
            [
                (pod_of({"cpu": "1"}, **near(ELSEWHERE)), 5),
                (pod_of({"cpu": "1"}, **near(ELSEWHERE, kind="podAntiAffinity")), 2),
                (CORE, 5),
            ],
            [(2, ["q"]), (0, ["q"]), (5, [])],
            id="affinity to other namespaces",
        ),
        pytest.param(
            [
                resource_quota(
                    "q",
                    {"cpu": "10", "memory": "10Gi", "pods": "10"},
                    {"cpu": "2", "memory": "2Gi", "pods": "7"},
                )
            ],
            [(pod_of(ONE_CORE), 5)],
            [(3, ["q"])],
            id="the number of pods",
        ),
        pytest.param(
            [resource_quota("q", {"pods": "4"}, {"pods": "1"})],
            [(pod_of(), 10)],
            [(3, ["q"])],
            id="pods without requests",
        ),
        pytest.param(
            [resource_quota("q", {"limits.cpu": "1", "count/pods": "1", "services": "0"})],
            [(CORE, 5)],
            [(5, [])],
            id="limits and objects are not counted",
        ),
        pytest.param(
            [resource_quota("q", {"cpu": "1", "pods": "100"}, {"cpu": "3"})],
            [(CORE, 5), (pod_of({"memory": "1Gi"}), 5)],
            [(0, ["q"]), (5, [])],
            id="nothing is left",
        ),
        pytest.param(
            [resource_quota("q", {"cpu": "1"}, {"cpu": "100m"})],
            [(pod_of({"cpu": "300m"}), 5), (pod_of({"cpu": "0"}), 5)],
            [(3, ["q"]), (5, [])],
            id="parts of a core",
        ),
        pytest.param(
            [resource_quota("q", {"memory": "2.5G", "requests.memory": "9007199254740993"})],
            [(pod_of({"memory": "1Gi"}), 5), (pod_of({"memory": "1"}), 500_000_000)],
            [(2, ["q"]), (352_516_352, ["q"])],
            id="bytes are exact",
        ),
        pytest.param(
            [resource_quota("odd", {"cpu": "many"}), resource_quota("q", CPU_2)],
            [(CORE, 5)],
            [(2, ["q"])],
            id="a quota that cannot be read limits nothing",
        ),
    ],
)
def test_quotas_are_shared_out(quotas, asked, found):
    """Each buffer gets what the least generous quota leaves beside what is used and what older buffers have, as upstream."""
    assert shared_out(quotas, *asked) == found


LOW, ANY = {"priorityClassName": "low"}, {"priorityClassName": "any"}
TWO = ["high-priority", "medium"]


@pytest.mark.parametrize(
    ("scope", "pod", "counts"),
    [
        ("NotTerminating", pod_of(activeDeadlineSeconds=60), True),
        ("Terminating", pod_of(activeDeadlineSeconds=60), False),
        ("BestEffort", pod_of(), True),
        ("BestEffort", pod_of({"cpu": "100m"}), False),
        ("BestEffort", pod_of({"memory": "0"}), False),
        ("NotBestEffort", pod_of({"cpu": "100m"}), True),
        ("NotBestEffort", pod_of(), False),
        ("PriorityClass", pod_of(**ANY), True),
        ("PriorityClass", pod_of(), False),
        (("PriorityClass", "In", TWO), pod_of(**HIGH), True),
        (("PriorityClass", "In", TWO), pod_of(**LOW), False),
        (("PriorityClass", "NotIn", TWO), pod_of(**LOW), True),
        (("PriorityClass", "NotIn", TWO), pod_of(), True),
        (("PriorityClass", "NotIn", TWO), pod_of(**HIGH), False),
        (("PriorityClass", "Exists", []), pod_of(**ANY), True),
        (("PriorityClass", "Exists", []), pod_of(), False),
        (("PriorityClass", "DoesNotExist", []), pod_of(), True),
        (("PriorityClass", "DoesNotExist", []), pod_of(**ANY), False),
        (("PriorityClass", "invalid", ["foo"]), pod_of(), False),
        (("PriorityClass", "In", []), pod_of(**HIGH), False),
        ("CrossNamespacePodAffinity", pod_of(**near(ELSEWHERE)), True),
        ("CrossNamespacePodAffinity", pod_of(**near(ANYWHERE)), True),
        ("CrossNamespacePodAffinity", pod_of(**near(ELSEWHERE, PREFERRED)), True),
        ("CrossNamespacePodAffinity", pod_of(**near(ELSEWHERE, REQUIRED, "podAntiAffinity")), True),
        ("CrossNamespacePodAffinity", pod_of(**near(ELSEWHERE, PREFERRED, "podAntiAffinity")), True),
        ("CrossNamespacePodAffinity", pod_of(**near(HERE)), False),
        ("CrossNamespacePodAffinity", pod_of(), False),
        ("VolumeAttributesClass", pod_of(), False),
    ],
)
def test_a_quota_counts_the_pods_in_its_scopes(scope, pod, counts):
    """A scope by name and by expression; an expression that cannot be read takes its quota out."""
    chosen = {"scopes": [scope]} if isinstance(scope, str) else {"expressions": [scope]}
    assert shared_out([resource_quota("q", {"pods": "0"}, **chosen)], (pod, 1)) == (
        [(0, ["q"])] if counts else [(1, [])]
    )


BIG = pod_template("big", cpu="3")


def room(name, replicas=3, **fields):
    return buffer(name, podTemplateRef={"name": "big"}, replicas=replicas, **fields)


def status(held, name):
    return next(one for one in held.state.capacity.buffers if one.metadata.name == name).status


def limited(held, name):
    """Return the number of pods, and status and message of the condition."""
    found = status(held, name)
    said, reason, message = conditions_of(found)["LimitedByQuotas"]
    assert reason == "ResourceQuotasAllocated"
    return found.replicas, said, message


def changed(**fields):
    return {"capacity": CapacityChanges(**fields)}


def test_a_limited_buffer_buys_for_the_pods_that_are_left():
    """Status and placeholder pods are cut, and both follow the quota when it grows."""
    held = world(
        buffers=[room("room", 4)],
        templates=[BIG],
        resource_quotas=[resource_quota("team", {"cpu": "8"}, {"cpu": "2"})],
    )
    assert held.increases() == {"g": 1}
    assert limited(held, "room") == (2, "True", "Buffer replicas limited from 4 to 2 due to quotas: team")
    assert {one.type: one.observed_generation for one in status(held, "room").conditions}[
        "LimitedByQuotas"
    ] == 2
    more = resource_quota("team", {"cpu": "12"}, {"cpu": "2"})
    assert held.increases(at=seconds(10), **changed(resource_quotas=(more,))) == {"g": 1}
    assert limited(held, "room") == (3, "True", "Buffer replicas limited from 4 to 3 due to quotas: team")
    enough = resource_quota("team", {"cpu": "100"}, {"cpu": "2"})
    assert held.increases(at=seconds(20), **changed(resource_quotas=(enough,))) == {"g": 1}
    assert limited(held, "room") == (4, "False", "")


def test_no_pod_is_left_of_a_full_quota():
    """Such a buffer is empty, says by which quota, and buys nothing."""
    full = resource_quota("full", {"requests.cpu": "4"}, {"requests.cpu": "5"})
    held = world(buffers=[room("room")], templates=[BIG], resource_quotas=[full])
    assert held.increases() == {}
    assert limited(held, "room") == (0, "True", "Buffer replicas limited from 3 to 0 due to quotas: full")
    assert conditions_of(status(held, "room"))["Provisioning"][:2] == ("False", "BufferIsEmpty")


def test_the_oldest_buffer_comes_first():
    """Of two of one age the name decides; what is another's, is not ready or in another namespace takes nothing."""
    late = "2026-03-02T07:59:00Z"
    other = replace(room("other"), metadata=replace(room("other").metadata, namespace="elsewhere"))
    held = world(
        buffers=[
            room("a", created=late),
            room("b"),
            room("c"),
            room("foreign", provisioningStrategy="example.com/other"),
            buffer("lost", podTemplateRef={"name": "none"}, replicas=9),
            other,
        ],
        templates=[BIG, replace(BIG, metadata=replace(BIG.metadata, namespace="elsewhere"))],
        resource_quotas=[
            resource_quota("team", {"cpu": "15"}),
            resource_quota("their", {"cpu": "3"}, namespace="elsewhere"),
        ],
    )
    held.tick()
    assert {name: limited(held, name)[0] for name in ("a", "b", "c", "other")} == {
        "b": 3,
        "c": 2,
        "a": 0,
        "other": 1,
    }
    assert status(held, "foreign") == CapacityBufferStatus(conditions=())
    assert "LimitedByQuotas" not in conditions_of(status(held, "lost"))


def test_a_quota_without_a_status_limits_nothing():
    """As upstream: until the cluster has taken a quota in force, its spec is not looked at."""
    new = replace(resource_quota("new", {"cpu": "0"}), status=type(BASE.status)())
    held = world(buffers=[room("room")], templates=[BIG], resource_quotas=[new])
    held.tick()
    assert limited(held, "room") == (3, "False", "")


def test_a_quiet_limit_is_written_once():
    """The next tick comes to the same number from the spec, and the condition's time stays."""
    held = world(
        buffers=[room("room")], templates=[BIG], resource_quotas=[resource_quota("team", {"cpu": "3"})]
    )
    held.tick()
    before = status(held, "room")
    held.tick(at=minutes(5))
    assert (status(held, "room"), held.writes) == (before, [])


def test_quotas_that_cannot_be_read_take_no_limit_away():
    """A buffer that was limited stays so until they are read again; another one is not limited, and says nothing of quotas."""
    held = world(
        buffers=[room("room")], templates=[BIG], resource_quotas=[resource_quota("team", {"cpu": "3"})]
    )
    held.tick()
    unread = {"unread": ("resourcequotas",), **changed(capacity_buffers=(room("young", 1),))}
    assert held.increases(at=seconds(10), **unread) == {"g": 1}
    assert limited(held, "room") == (1, "True", "Buffer replicas limited from 3 to 1 due to quotas: team")
    assert (status(held, "young").replicas, "LimitedByQuotas" in conditions_of(status(held, "young"))) == (
        1,
        False,
    )
    lines = explain_buffer(held.state, ("default", "young"), START)
    assert (
        "ResourceQuotas cannot be read: a buffer that one has limited stays so, others are not limited"
        in lines
    )
    held.tick(at=seconds(20))
    assert limited(held, "young") == (0, "True", "Buffer replicas limited from 1 to 0 due to quotas: team")


def test_explain_names_the_quota_and_its_resource():
    """What it leaves, what is used, and what older buffers have; a quota that leaves more is not named."""
    quotas = [
        resource_quota("memory", {"requests.memory": "5Gi"}, {"requests.memory": "1Gi"}),
        resource_quota("wide", {"cpu": "100"}),
    ]
    foreign = room("0", provisioningStrategy="example.com/other")
    theirs = CapacityBufferStatus(pod_template_ref=LocalReference("big"), replicas=1)
    three = [replace(foreign, status=theirs), room("a"), room("b")]
    held = world(buffers=three, templates=[BIG], resource_quotas=quotas)
    held.tick()
    lines = explain_buffer(held.state, ("default", "b"), START)
    assert (
        "LimitedByQuotas: True, ResourceQuotasAllocated: Buffer replicas limited from 3 to 1 due to quotas: memory "
        "(2026-03-02T08:00:00Z)" in lines
    )
    named = [one for one in lines if one.startswith("quota ")]
    assert named == [
        "quota memory limits it to 1: requests.memory 5Gi, 1Gi used, 3Gi reserved by older buffers"
    ]
    assert not [
        one for one in explain_buffer(held.state, ("default", "a"), START) if one.startswith("quota ")
    ]


def test_quotas_are_read_where_the_statuses_of_buffers_are_written():
    """Injection alone takes the number from the status. They may be refused, and what changes with each write is not held."""
    assert RESOURCE_QUOTAS not in kinds_read(Settings(capacity_buffer_pod_injection_enabled=True))
    assert RESOURCE_QUOTAS in kinds_read(Settings(capacity_buffer_controller_enabled=True))
    assert RESOURCE_QUOTAS in ENTRY.optional_kinds
    assert slim_capacity(replace(BASE, metadata=replace(BASE.metadata, resource_version="7"))) == BASE

"""Behavior of the embedded API server beyond the facts that every cluster shares."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Options, Request, Rest, Store
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    POD_METRICS,
    PODS,
    PRIORITY_CLASSES,
)
from kubetide.ports.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    Unclassified,
)
from kubetide.runtime.timing.clock import LoopClock, run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, hours, minutes, parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")


class FixedClock:
    def __init__(self, now: Instant = START) -> None:
        self.time = now

    def now(self) -> Instant:
        return self.time


@pytest.fixture
def rest() -> Rest:
    return Rest(Store(), FixedClock(), seed=1)


def create(rest, kind, body, **options):
    return rest.handle(Request("create", kind, "default", options=Options(**options), body=body)).object.json


def names(rest, kind, namespace="default", **options):
    listing = rest.handle(Request("list", kind, namespace, options=Options(**options))).listing
    return [revision.key[1] for revision in listing]


def test_unknown_fields_are_stored(rest):
    """Fields that no type of ours names survive creation, patches and status writes."""
    body = builders.deployment("a", extra={"spec": {"x-new": {"deep": [1, {"a": None}]}}, "x-top": 1})
    create(rest, DEPLOYMENTS, body)
    patch = Request("patch", DEPLOYMENTS, "default", "a", body={"metadata": {"labels": {"l": "1"}}})
    status = Request(
        "patch", DEPLOYMENTS, "default", "a", "status", body={"status": {"replicas": 1, "x-s": 2}}
    )
    rest.handle(patch)
    json = rest.handle(status).object.json
    assert json["spec"]["x-new"] == {"deep": [1, {"a": None}]}
    assert (json["x-top"], json["status"]["x-s"]) == (1, 2)


def test_nulls_of_known_fields_are_as_good_as_absent(rest):
    """Manifests that spell absent fields as null are taken."""
    body = builders.pod("a", extra={})
    body["metadata"] |= {"creationTimestamp": None, "namespace": None, "annotations": None}
    body["spec"] |= {"nodeName": None, "hostNetwork": None, "priority": None}
    body["status"] = None
    assert create(rest, PODS, body)["metadata"]["namespace"] == "default"


@pytest.mark.parametrize("verb", ["create", "replace", "patch", "delete", "scale", "binding", "eviction"])
def test_a_dry_run_writes_nothing(rest, verb):
    """A dry run answers as the real thing would and leaves the store as it was."""
    create(rest, CONFIG_MAPS, builders.config_map("a"))
    create(rest, PODS, builders.pod("p"))
    create(rest, DEPLOYMENTS, builders.deployment("d"))
    dry = Options(dry_run=True)
    requests = {
        "create": Request("create", CONFIG_MAPS, "default", options=dry, body=builders.config_map("b")),
        "replace": Request(
            "replace", CONFIG_MAPS, "default", "a", "", dry, builders.config_map("a", data={"k": "v"})
        ),
        "patch": Request("patch", CONFIG_MAPS, "default", "a", "", dry, {"data": {"k": "v"}}),
        "delete": Request("delete", CONFIG_MAPS, "default", "a", options=dry),
        "scale": Request("patch", DEPLOYMENTS, "default", "d", "scale", dry, {"spec": {"replicas": 7}}),
        "binding": Request("create", PODS, "default", "p", "binding", dry, {"target": {"name": "n"}}),
        "eviction": Request("create", PODS, "default", "p", "eviction", dry, {}),
    }
    before = rest.store.version
    answer = rest.handle(requests[verb]).object.json
    assert rest.store.version == before
    assert names(rest, CONFIG_MAPS) == ["a"]
    if verb in {"replace", "patch"}:
        assert answer["data"] == {"k": "v"}
    if verb == "scale":
        assert answer["spec"]["replicas"] == 7


def test_a_dry_run_is_validated(rest):
    """A dry run is refused as the real thing would be."""
    with pytest.raises(Invalid):
        create(rest, PODS, {"metadata": {"name": "a"}, "spec": {"containers": []}}, dry_run=True)


def test_deletecollection_deletes_what_it_selects(rest):
    """A collection delete takes the selected objects of the namespace and no others."""
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        create(rest, CONFIG_MAPS, builders.config_map(name, labels={"app": app}))
    rest.handle(Request("deletecollection", CONFIG_MAPS, "default", options=Options(labels="app=x")))
    assert names(rest, CONFIG_MAPS) == ["c"]


def test_uids_and_names_depend_on_the_seed_alone():
    """Two clusters of one seed give equal uids and generated names, another seed other ones."""

    def draw(seed, extra):
        rest = Rest(Store(), FixedClock(), seed=seed)
        for _ in range(extra):
            create(rest, CONFIG_MAPS, builders.config_map("other-"))
        metas = [create(rest, PODS, builders.pod("web-"))["metadata"] for _ in range(3)]
        return [(meta["name"], meta["uid"]) for meta in metas]

    assert draw(1, extra=0) == draw(1, extra=5)  # one object more elsewhere moves no other
    assert not set(draw(1, extra=0)) & set(draw(2, extra=0))


def test_versions_required_by_leases(rest):
    """A PUT of a Lease or a disruption budget must name a version, as upstream's strategies demand."""
    create(rest, LEASES, builders.lease("l"))
    with pytest.raises(
        Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"
    ):
        rest.handle(Request("replace", LEASES, "default", "l", body=builders.lease("l", holder="x")))


def test_events_go_after_an_hour():
    """An event lives for an hour after its last write."""
    clock = FixedClock()
    rest = Rest(Store(), clock, seed=1)
    for name in ("old", "counted"):
        create(rest, EVENTS, {"metadata": {"name": name}})
    clock.time = Instant(START + minutes(40))
    rest.handle(Request("patch", EVENTS, "default", "counted", body={"count": 2}))
    clock.time = Instant(START + hours(1))
    create(rest, EVENTS, {"metadata": {"name": "new"}})
    assert names(rest, EVENTS) == ["counted", "new"]
    clock.time = Instant(START + hours(2))
    create(rest, EVENTS, {"metadata": {"name": "newer"}})
    assert names(rest, EVENTS) == ["newer"]


def test_the_lowest_global_default_counts(rest):
    """A pod without a class gets the global default; of several the lowest."""
    for name, value in (("high", 100), ("low", 10)):
        create(rest, PRIORITY_CLASSES, builders.priority_class(name, value, global_default=True))
    spec = create(rest, PODS, builders.pod("a"))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "low")


def test_a_priority_is_not_chosen_freely(rest):
    """A pod that says a priority other than its class's is refused."""
    with pytest.raises(Forbidden, match="must not be provided in pod spec"):
        create(rest, PODS, builders.pod("a", extra={"spec": {"priority": 5}}))


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_with_terms(*terms, constraints=()):
    """A pod of release 2 whose affinity and anti-affinity have these terms, required and preferred."""
    weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    part = {REQUIRED: list(terms), PREFERRED: weighted}
    spec = {
        "affinity": {"podAffinity": part, "podAntiAffinity": part},
        "topologySpreadConstraints": list(constraints),
    }
    return builders.pod("p", labels={"app": "web", "release": "2"}, extra={"spec": spec})


def test_label_keys_are_merged_into_the_selectors_of_a_new_pod(rest):
    """matchLabelKeys and mismatchLabelKeys become requirements with the pod's own values, in every kind of term."""
    own = {"key": "app", "operator": "Exists"}
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"tier": "x"}, "matchExpressions": [own]},
        "matchLabelKeys": ["release", "missing"],
        "mismatchLabelKeys": ["app"],
    }
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["release"],
    }
    spec = create(rest, PODS, pod_with_terms(term, constraints=[constraint]))["spec"]
    more = [
        {"key": "release", "operator": "In", "values": ["2"]},
        {"key": "app", "operator": "NotIn", "values": ["web"]},
    ]
    for part in ("podAffinity", "podAntiAffinity"):
        found = spec["affinity"][part]
        for one in (found[REQUIRED][0], found[PREFERRED][0]["podAffinityTerm"]):
            assert one["labelSelector"] == {"matchLabels": {"tier": "x"}, "matchExpressions": [own, *more]}
            assert one["matchLabelKeys"] == ["release", "missing"]
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": more[:1]}


@pytest.mark.parametrize(
    "changes",
    [
        {"labelSelector": None},
        {"matchLabelKeys": None},
        {"matchLabelKeys": ["none"]},
        {"matchLabelKeys": [{}]},
    ],
)
def test_label_keys_that_mean_nothing_change_nothing(rest, changes):
    """Without a selector, keys, or labels of the pod by these keys a term stays as it was sent."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": "x"}}, "matchLabelKeys": ["app"]}
    term = {key: value for key, value in {**term, **changes}.items() if value is not None}
    found = create(rest, PODS, pod_with_terms(term))["spec"]["affinity"]["podAffinity"][REQUIRED]
    assert found == [term]


def test_kinds_and_verbs_that_are_not_served(rest):
    """Computed kinds, unknown subresources and impossible verbs are refused as the API server refuses them."""
    with pytest.raises(NotFound, match="could not find the requested resource"):
        rest.handle(Request("list", POD_METRICS, "default"))
    create(rest, PODS, builders.pod("a"))
    with pytest.raises(NotFound, match="could not find the requested resource"):
        rest.handle(Request("get", PODS, "default", "a", "scale"))
    with pytest.raises(MethodNotAllowed):
        rest.handle(Request("get", PODS, "default", "a", "binding"))
    with pytest.raises(MethodNotAllowed):
        rest.handle(Request("delete", PODS, "default", "a", "status"))
    with pytest.raises(Unclassified, match='parsing "x": invalid syntax'):
        rest.handle(Request("watch", PODS, options=Options(resource_version="x")))


@pytest.mark.parametrize(
    "body",
    [None, [], "text", {"metadata": []}, {"metadata": {}, "kind": "Pod"}, {"apiVersion": "v2"}],
    ids=repr,
)
def test_bodies_that_are_no_object_are_bad_requests(rest, body):
    """Whatever is sent as a body, the answer is a refusal and not a crash."""
    create(rest, CONFIG_MAPS, builders.config_map("a"))
    for request in (
        Request("create", CONFIG_MAPS, "default", body=body),
        Request("replace", CONFIG_MAPS, "default", "a", body=body),
    ):
        with pytest.raises((BadRequest, Invalid)):
            rest.handle(request)


@pytest.mark.parametrize(
    "patch", [None, [], "text", {"metadata": []}, {"metadata": None}, {"kind": "Pod"}], ids=repr
)
def test_patches_that_break_the_object_are_bad_requests(rest, patch):
    """A merge patch that is no object, or leaves none of this kind, is refused; the object stays."""
    before = create(rest, CONFIG_MAPS, builders.config_map("a"))
    request = Request("patch", CONFIG_MAPS, "default", "a", body=patch)
    if patch == {"metadata": None}:
        assert rest.handle(request).object.json == before  # the server's own metadata cannot be removed
        return
    with pytest.raises((BadRequest, Invalid)):
        rest.handle(request)
    assert rest.handle(Request("get", CONFIG_MAPS, "default", "a")).object.json == before


def test_status_of_an_error_names_object_and_cause(rest):
    """An error's Status carries code, reason, details and causes for clients that look there."""
    with pytest.raises(Invalid) as caught:
        create(rest, PODS, {"metadata": {"name": "a"}, "spec": {"containers": []}})
    status = caught.value.status()
    assert (status["code"], status["reason"], status["kind"]) == (422, "Invalid", "Status")
    assert (status["details"]["name"], status["details"]["kind"]) == ("a", "Pod")
    cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}
    assert cause in status["details"]["causes"]
    with pytest.raises(NotFound) as missing:
        rest.handle(Request("get", DEPLOYMENTS, "default", "none"))
    assert missing.value.status()["details"] == {"name": "none", "group": "apps", "kind": "deployments"}


def test_an_owner_of_an_unknown_kind_counts_as_there(rest):
    """An object owned by a kind that is not stored here is not taken for garbage."""
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "j", "uid": "0000"}
    create(rest, CONFIG_MAPS, builders.config_map("a", owners=[owner]))
    assert names(rest, CONFIG_MAPS) == ["a"]


def test_an_owner_in_another_namespace_is_none(rest):
    """Owners are looked for in the same namespace only."""
    owner = create(rest, CONFIG_MAPS, builders.config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    body = builders.config_map("stray", owners=[reference])
    rest.handle(Request("create", CONFIG_MAPS, "kube-system", body=body))
    assert names(rest, CONFIG_MAPS, "kube-system") == []


def test_a_long_chain_of_owners_goes_without_recursion(rest):
    """Two thousand owners in a row are collected in both directions of propagation."""
    for propagation in ("Background", "Foreground"):
        uid = ""
        for index in range(2_000):
            owners = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": f"c{index - 1}",
                    "uid": uid,
                    "blockOwnerDeletion": True,
                }
            ]
            body = builders.config_map(f"c{index}", owners=owners if index else ())
            uid = create(rest, CONFIG_MAPS, body)["metadata"]["uid"]
        rest.handle(Request("delete", CONFIG_MAPS, "default", "c0", options=Options(propagation=propagation)))
        assert names(rest, CONFIG_MAPS) == []


def test_a_namespace_with_finalizers_waits(rest):
    """A namespace with a finalizer of its own stays after its contents are deleted."""
    rest.handle(Request("create", NAMESPACES, body={"metadata": {"name": "n", "finalizers": ["test/hold"]}}))
    rest.handle(Request("delete", NAMESPACES, name="n"))
    assert rest.handle(Request("get", NAMESPACES, name="n")).object.json["status"]["phase"] == "Terminating"
    rest.handle(Request("patch", NAMESPACES, name="n", body={"metadata": {"finalizers": []}}))
    with pytest.raises(NotFound):
        rest.handle(Request("get", NAMESPACES, name="n"))


def test_an_eviction_may_carry_delete_options(rest):
    """An Eviction body's deleteOptions count: preconditions and grace."""
    pod = create(rest, PODS, builders.pod("a"))
    wrong = {"deleteOptions": {"preconditions": {"uid": "other"}}}
    with pytest.raises(Conflict):
        rest.handle(Request("create", PODS, "default", "a", "eviction", body=wrong))
    right = {"deleteOptions": {"preconditions": {"uid": pod["metadata"]["uid"]}}}
    answer = rest.handle(Request("create", PODS, "default", "a", "eviction", body=right))
    assert (answer.code, answer.object.json["status"]) == (201, "Success")
    assert names(rest, PODS) == []


def test_generated_names_step_aside(rest):
    """A generated name that is taken is drawn again."""
    first = create(rest, CONFIG_MAPS, builders.config_map("a-"))["metadata"]["name"]
    other = Rest(Store(), FixedClock(), seed=1)
    create(other, CONFIG_MAPS, builders.config_map(first))
    assert create(other, CONFIG_MAPS, builders.config_map("a-"))["metadata"]["name"] != first


def test_only_json_patches_that_leave_an_object(rest):
    """A JSON patch that takes the object or its metadata away is refused."""
    create(rest, CONFIG_MAPS, builders.config_map("a"))
    options = Options(patch_type="json")
    for path in ("", "/metadata"):
        body = [{"op": "replace", "path": path, "value": 1}]
        with pytest.raises(Invalid):
            rest.handle(Request("patch", CONFIG_MAPS, "default", "a", "", options, body))


def test_a_cluster_starts_once_over_a_store():
    """Starting over a store that already holds the first namespaces changes nothing."""
    store = Store()
    Rest(store, FixedClock(), seed=1)
    version = store.version
    Rest(store, FixedClock(), seed=2)
    assert store.version == version


def test_faults_are_those_of_one_client():
    """A client's faults hit its own requests, and no other client's."""

    class Refuse:
        async def before(self, request: Request) -> None:
            if request.verb == "create":
                raise Conflict(f"fault on {request.kind.plural}")

    async def main(clock: LoopClock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        unlucky = cluster.client(faults=Refuse())
        with pytest.raises(Conflict, match="fault on configmaps"):
            await unlucky.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
        with pytest.raises(AlreadyExists):
            await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
        return (await unlucky.get(CONFIG_MAPS, "a", namespace="default")).metadata.name

    assert run_virtual(main, start=START) == "a"

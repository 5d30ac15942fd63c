"""Requests to ``pods/NAME/resize``, good and bad, in order."""

from __future__ import annotations

from typing import Any

from tests.bad_input.requests import APPLY, CORE, JSON_PATCH, MERGE, PODS, STRATEGIC, Case, pod

_AMOUNTS = {"cpu": "100m", "memory": "64Mi"}
_LIMITS = {"cpu": "200m", "memory": "128Mi"}


def _resources(requests: Any = None, limits: Any = None) -> dict[str, Any]:
    return {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}


def _of(name: str = "c", part: str = "containers", **fields: Any) -> dict[str, Any]:
    return {"spec": {part: [{"name": name, **fields}]}}


def _resized(requests: Any = None, limits: Any = None, name: str = "c", part: str = "containers") -> Any:
    return _of(name, part, resources=_resources(requests, limits))


def _pod(name: str, requests: Any = _AMOUNTS, limits: Any = _LIMITS, **spec: Any) -> Case:
    metadata, container = spec.pop("metadata", None), spec.pop("container", {})
    body = pod(
        name,
        metadata=metadata,
        container={"resources": _resources(requests, limits), **container},
        **spec,
    )
    return Case(f"resize: setup {name}", "POST", PODS, body, {}, "code")


def _case(what: str, name: str, body: Any, headers: Any = STRATEGIC, same: str = "all") -> Case:
    return Case(f"resize: {what}", "PATCH", f"{PODS}/{name}/resize", body, headers, same)


def _whole(name: str, requests: Any, limits: Any, **more: Any) -> dict[str, Any]:
    made = pod(name, container={"resources": _resources(requests, limits), **more.pop("container", {})})
    return {**made, **more}


_INIT = [
    {"name": "side", "image": "i", "restartPolicy": "Always", "resources": _resources(_AMOUNTS, _LIMITS)},
    {"name": "once", "image": "i", "resources": _resources(_AMOUNTS, _LIMITS)},
]
_ENDED = {"status": {"phase": "Succeeded"}}

RESIZES = (
    _pod("burst"),
    _pod("same", _AMOUNTS, _AMOUNTS),
    _pod("best", None, None),
    _pod("inits", initContainers=_INIT),
    _pod("half", {"cpu": "100m"}, {"cpu": "200m"}),
    _pod("windows", os={"name": "windows"}),
    _pod("static", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}, nodeName="n"),
    Case(
        "resize: setup node",
        "POST",
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "small"},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi"}},
        },
        {},
        "code",
    ),
    _pod("bound", nodeName="n"),
    _pod("lost", nodeName="nowhere"),
    _pod("on-small", limits=None, nodeName="small"),
    _pod("beside", {"cpu": "900m"}, None, nodeName="small"),
    _pod("level-requests", None, None, resources=_resources({"cpu": "1", "memory": "1Gi"})),
    _pod("level", resources=_resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "2Gi"})),
    _pod("ended"),
    Case("resize: setup it ends", "PATCH", f"{PODS}/ended/status", _ENDED, MERGE, "code"),
    _pod(
        "memory",
        container={"resizePolicy": [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]},
    ),
    _pod("never", restartPolicy="Never"),
    _pod("disk", {**_AMOUNTS, "ephemeral-storage": "1Gi"}),
    _pod("going", metadata={"finalizers": ["example.com/a"]}),
    Case("resize: setup it goes", "DELETE", f"{PODS}/going", None, {}, "code"),
    Case("resize: get", "GET", f"{PODS}/burst/resize"),
    _case("more cpu", "burst", _resized({"cpu": "150m"})),
    _case("cpu in another form", "burst", _resized({"cpu": "0.15"})),
    _case("nothing", "burst", {}),
    _case("request over limit", "burst", _resized({"cpu": "300m"})),
    _case("negative", "burst", _resized({"cpu": "-1"})),
    _case("limit under request", "burst", _resized(None, {"memory": "32Mi"})),
    _case("storage", "burst", _resized({"ephemeral-storage": "1Gi"})),
    _case("storage changed", "disk", _resized({"ephemeral-storage": "2Gi"})),
    _case("storage taken away", "disk", _resized({"ephemeral-storage": None})),
    _case("other resource", "burst", _resized({"example.com/x": "1"}, {"example.com/x": "1"})),
    _case("unknown resource", "burst", _resized({"wheels": "1"})),
    _case("memory limit down", "burst", _resized(None, {"memory": "100Mi"})),
    _case("memory limit up", "burst", _resized(None, {"memory": "256Mi"})),
    _case("request taken away", "burst", _resized({"cpu": None})),
    _case("limit taken away", "burst", _resized(None, {"cpu": None})),
    _case("request and limit taken away", "burst", _resized({"cpu": None}, {"cpu": None})),
    _case("all taken away", "burst", _of(resources=None)),
    _case("request added", "half", _resized({"memory": "64Mi"})),
    _case("limit added", "half", _resized(None, {"memory": "128Mi"})),
    _case("burstable made guaranteed", "burst", _resized(_LIMITS, {"memory": "128Mi", "cpu": "200m"})),
    _case("guaranteed made burstable", "same", _resized({"cpu": "50m"})),
    _case("guaranteed stays", "same", _resized({"cpu": "2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})),
    _case("guaranteed in another form", "same", _resized({"cpu": "2000m"})),
    _case("best effort made burstable", "best", _resized({"cpu": "100m"})),
    _case("best effort to zero", "best", _resized({"cpu": "0"})),
    _case("image", "burst", _of(image="other")),
    _case("image and cpu", "burst", _of(image="other", resources={"requests": {"cpu": "160m"}})),
    _case("label", "burst", {"metadata": {"labels": {"a": "b"}}}),
    _case("finalizer", "burst", {"metadata": {"finalizers": ["example.com/b"]}}),
    _case("bad label", "burst", {"metadata": {"labels": {"a b": "b"}}}),
    _case("status", "burst", {"status": {"phase": "Failed"}}),
    _case("tolerations", "burst", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
    _case("deadline", "burst", {"spec": {"activeDeadlineSeconds": 5}}),
    _case("grace", "burst", {"spec": {"terminationGracePeriodSeconds": 1}}),
    _case("node", "burst", {"spec": {"nodeName": "n"}}),
    _case("host network", "burst", {"spec": {"hostNetwork": True}}),
    _case("pod level", "burst", {"spec": {"resources": {"requests": {"cpu": "1"}}}}),
    _case("another container", "burst", _of("d", image="i")),
    _case("env", "burst", _of(env=[{"name": "A", "value": "b"}])),
    _case("ports", "burst", _of(ports=[{"containerPort": 80}])),
    _case(
        "policy",
        "burst",
        _of(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    ),
    _case("bad policy", "burst", _of(resizePolicy=[{"resourceName": "disk", "restartPolicy": "Sometimes"}])),
    _case("policy without resource", "burst", _of(resizePolicy=[{"restartPolicy": "NotRequired"}])),
    _case("policy without restart", "burst", _of(resizePolicy=[{"resourceName": "cpu"}])),
    _case(
        "policy twice",
        "burst",
        {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "resizePolicy": [
                            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                        ],
                    }
                ]
            }
        },
        MERGE,
    ),
    _case("memory limit down with restart", "memory", _resized(None, {"memory": "100Mi"})),
    _case(
        "restart policy of a pod that never restarts",
        "never",
        _of(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
    ),
    _case("cpu of a pod that never restarts", "never", _resized({"cpu": "150m"})),
    _case("sidecar", "inits", _resized({"cpu": "150m"}, None, "side", "initContainers")),
    _case("init container", "inits", _resized({"cpu": "150m"}, None, "once", "initContainers")),
    _case(
        "init container and sidecar",
        "inits",
        {
            "spec": {
                "initContainers": [
                    {"name": "side", "resources": {"requests": {"cpu": "120m"}}},
                    {"name": "once", "resources": {"requests": {"cpu": "120m"}}},
                ]
            }
        },
    ),
    _case("static", "static", _resized({"cpu": "150m"})),
    _case("windows", "windows", _resized({"cpu": "150m"})),
    _case("ended", "ended", _resized({"cpu": "150m"})),
    _case("going", "going", _resized({"cpu": "150m"})),
    _case("missing", "missing", _resized({"cpu": "150m"})),
    _case("merge patch", "half", _resized({"cpu": "150m"}), MERGE),
    _case(
        "json patch",
        "burst",
        [{"op": "replace", "path": "/spec/containers/0/resources/requests/cpu", "value": "170m"}],
        JSON_PATCH,
    ),
    _case(
        "json patch of an image",
        "burst",
        [{"op": "replace", "path": "/spec/containers/0/image", "value": "other"}],
        JSON_PATCH,
    ),
    _case("unknown field", "burst", _of(resources={"wheels": {}})),
    Case(
        "resize: apply without manager",
        "PATCH",
        f"{PODS}/burst/resize",
        _whole("burst", {"cpu": "180m"}, None),
        APPLY,
    ),
    Case(
        "resize: apply",
        "PATCH",
        f"{PODS}/burst/resize?fieldManager=m&force=true",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "burst"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "180m"}}}]},
        },
        APPLY,
    ),
    Case(
        "resize: apply in conflict",
        "PATCH",
        f"{PODS}/same/resize?fieldManager=m",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "same"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "180m"}}}]},
        },
        APPLY,
    ),
    Case(
        "resize: apply to a pod that is not there",
        "PATCH",
        f"{PODS}/missing/resize?fieldManager=m",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "missing"}},
        APPLY,
    ),
    Case("resize: put", "PUT", f"{PODS}/best/resize", _whole("best", None, None)),
    Case(
        "resize: put with other image",
        "PUT",
        f"{PODS}/burst/resize",
        _whole("burst", {"cpu": "190m"}, _LIMITS, container={"image": "other"}),
        {},
        "details",
    ),
    Case(
        "resize: put with another name of the container",
        "PUT",
        f"{PODS}/burst/resize",
        _whole("burst", _AMOUNTS, _LIMITS, container={"name": "d"}),
    ),
    Case(
        "resize: put without init containers",
        "PUT",
        f"{PODS}/inits/resize",
        _whole("inits", _AMOUNTS, _LIMITS),
    ),
    Case(
        "resize: put in another order",
        "PUT",
        f"{PODS}/inits/resize",
        {
            **(_twisted := _whole("inits", _AMOUNTS, _LIMITS)),
            "spec": {**_twisted["spec"], "initContainers": _INIT[::-1]},
        },
    ),
    _case("bound", "bound", _resized({"cpu": "150m"})),
    _case("bound, another label", "bound", {"metadata": {"labels": {"a": "b"}}}),
    _case("on a node that is gone", "lost", _resized({"cpu": "150m"})),
    _case("as much as others leave, and more", "on-small", _resized({"cpu": "500m"})),
    _case("more cpu than the node has", "on-small", _resized({"cpu": "2"})),
    _case("more memory than the node has", "on-small", _resized({"memory": "2Gi"})),
    _case("more than the node has", "on-small", _resized({"cpu": "1100m", "memory": "2Gi"})),
    _case("as much as the node has", "on-small", _resized({"cpu": "1"})),
    _case(
        "level requests taken away", "level-requests", {"spec": {"resources": {"requests": {"cpu": None}}}}
    ),
    _case("level more", "level", {"spec": {"resources": {"requests": {"cpu": "1500m"}}}}),
    _case("level over limit", "level", {"spec": {"resources": {"requests": {"cpu": "3"}}}}),
    _case("level request taken away", "level", {"spec": {"resources": {"requests": {"cpu": None}}}}),
    _case("level limit taken away", "level", {"spec": {"resources": {"limits": {"cpu": None}}}}),
    _case("level taken away", "level", {"spec": {"resources": None}}),
    _case("level storage", "level", {"spec": {"resources": {"requests": {"hugepages-2Mi": "2Mi"}}}}),
    _case("level under containers", "level", {"spec": {"resources": {"requests": {"cpu": "50m"}}}}),
    _case("container over level", "level", _resized({"cpu": "3"}, {"cpu": "3"})),
    _case(
        "level made guaranteed", "level", {"spec": {"resources": {"requests": {"cpu": "2", "memory": "2Gi"}}}}
    ),
    Case("resize: put of another", "PUT", f"{PODS}/burst/resize", _whole("same", None, None)),
    Case("resize: put of another kind", "PUT", f"{PODS}/burst/resize", {"apiVersion": "v1", "kind": "Node"}),
    Case("resize: post", "POST", f"{PODS}/burst/resize", {}),
    Case("resize: delete", "DELETE", f"{PODS}/burst/resize"),
    Case("resize: of a config map", "GET", f"{CORE}/configmaps/kept/resize"),
    Case("resize: dry run", "PATCH", f"{PODS}/half/resize?dryRun=All", _resized({"cpu": "170m"}), STRATEGIC),
    Case("resize: get after the dry run", "GET", f"{PODS}/half/resize"),
    Case("resize: ordinary update", "PATCH", f"{PODS}/half", _resized({"cpu": "10m"}), STRATEGIC, "words"),
    Case(
        "resize: ordinary update of the policy",
        "PATCH",
        f"{PODS}/half",
        _of(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        STRATEGIC,
        "words",
    ),
    Case(
        "resize: unknown resource in a new pod",
        "POST",
        PODS,
        pod("p0", container={"resources": {"requests": {"wheels": "1"}}}),
    ),
    Case("resize: bad policy in a new pod", "POST", PODS, pod("p1", container={"resizePolicy": [{}]})),
    Case(
        "resize: restart in a new pod that never restarts",
        "POST",
        PODS,
        pod(
            "p2",
            container={"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            restartPolicy="Never",
        ),
    ),
)

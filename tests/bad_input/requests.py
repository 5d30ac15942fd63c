"""Bad requests as data: what is sent, in order, to a fresh server.

A case has a name, a method, a path and, where they matter, headers and a body: a text is sent as it is,
anything else as JSON. ``same`` says how much of the answer must be kube-apiserver's: everything (the
code, the reason, the message and the details, with its causes), all but the ``words`` where these show
Go's own types or the whole object, the ``details`` with the reason, or the ``code`` alone. ``but`` says why
this server answers otherwise on purpose.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

NAMESPACE = "bad-input"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
CONFIG = f"{CORE}/configmaps"
PODS = f"{CORE}/pods"
DEPLOYMENTS = f"{APPS}/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = f"/apis/bad.example.com/v1/namespaces/{NAMESPACE}/widgets"

MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}
YAML = {"Content-Type": "application/yaml"}


class Case(NamedTuple):
    """One request of the battery."""

    name: str
    method: str
    path: str
    body: Any = None
    headers: dict[str, str] = {}  # noqa: RUF012  never changed
    same: str = "all"
    but: str = ""

    @property
    def data(self) -> bytes | None:
        """The body's bytes."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


def config(name: str | None = None, **more: Any) -> dict[str, Any]:
    metadata = {**({} if name is None else {"name": name}), **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def pod(name: str, *, metadata: Any = None, container: Any = None, **spec: Any) -> dict[str, Any]:
    first = {"name": "c", "image": "i", **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": [first], **spec},
    }


def deployment(name: str, *, labels: Any = None, **spec: Any) -> dict[str, Any]:
    labels = labels or {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def definition(properties: Any, *, required: Any = ()) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        spec["required"] = list(required)
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bad.example.com"},
        "spec": {
            "group": "bad.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "bad.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


FREE = {
    "size": {"type": "integer"},
    "note": {"type": "string"},
    "tags": {"type": "array", "items": {"type": "string"}},
}
STRICT = {
    "size": {"type": "integer", "maximum": 10},
    "note": {"type": "string", "maxLength": 8},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
}

BROKEN = (
    Case("json that ends", "POST", CONFIG, "{"),
    Case("json that ends in a text", "POST", CONFIG, '{"apiVersion":"v1","kind":"Conf'),
    Case("json with a word", "POST", CONFIG, "hello"),
    Case("json with a comma too many", "POST", CONFIG, '{"apiVersion":"v1","kind":"ConfigMap",}'),
    Case("json with something after it", "POST", CONFIG, '{"apiVersion":"v1","kind":"ConfigMap"} x'),
    Case("json without a colon", "POST", CONFIG, '{"apiVersion" "v1"}'),
    Case("json with a bad number", "POST", CONFIG, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":01}}'),
    Case(
        "json with a bad escape", "POST", CONFIG, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"\\x"}}'
    ),
    Case(
        "json with a raw newline", "POST", CONFIG, '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"\n"}}'
    ),
    Case("a list", "POST", CONFIG, "[]"),
    Case("a text", "POST", CONFIG, '"x"'),
    Case("a number", "POST", CONFIG, "1"),
    Case("null", "POST", CONFIG, "null"),
    Case("no body", "POST", CONFIG),
    Case("blank body", "POST", CONFIG, "  \n"),
    Case("empty object", "POST", CONFIG, {}),
    Case("nothing but a kind", "POST", CONFIG, {"kind": "ConfigMap"}),
    Case("nothing but a version", "POST", CONFIG, {"apiVersion": "v1"}),
    Case("no type", "POST", CONFIG, {"metadata": {"name": "untyped"}}),
    Case("another kind", "POST", CONFIG, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}),
    Case(
        "another group",
        "POST",
        CONFIG,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}},
    ),
    Case("unknown kind", "POST", CONFIG, {"apiVersion": "v1", "kind": "Gadget", "metadata": {"name": "x"}}),
    Case(
        "unknown group",
        "POST",
        CONFIG,
        {"apiVersion": "none/v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
    ),
    Case("version that cannot be read", "POST", CONFIG, {"apiVersion": "a/b/c", "kind": "ConfigMap"}),
    Case("kind is a number", "POST", CONFIG, {"apiVersion": "v1", "kind": 1}),
    Case("yaml that cannot be read", "POST", CONFIG, "a: [b", YAML, "words"),
    Case("yaml with a tab", "POST", CONFIG, "a:\n\tb: 1\n", YAML, "words"),
    Case("yaml of a text", "POST", CONFIG, "hello", YAML, "words"),
    Case(
        "yaml with two documents",
        "POST",
        CONFIG,
        "a: 1\n---\nb: 2\n",
        YAML,
        "code",
        "a second document that nobody reads is refused",
    ),
    Case(
        "invalid utf-8",
        "POST",
        CONFIG,
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"utf"},"data":{"a":"\xff"}}',
    ),
    Case(
        "deep nesting",
        "POST",
        CONFIG,
        '{"apiVersion":"v1","kind":"ConfigMap","data":' + "[" * 20_000 + "]" * 20_000 + "}",
    ),
    Case("huge number in a list", "POST", DEPLOYMENTS, deployment("huge", replicas=10**30), {}, "words"),
    Case("fraction of a pod", "POST", DEPLOYMENTS, deployment("half", replicas=1.5), {}, "words"),
    Case("text for a number", "POST", DEPLOYMENTS, deployment("text", replicas="3")),
    Case("number for a text", "POST", CONFIG, config("n", data={"a": 1})),
    Case("true for a text", "POST", CONFIG, config("n", data={"a": True})),
    Case("list for a map", "POST", CONFIG, config("n", data=["a"])),
    Case("text for a map", "POST", CONFIG, config("n", data="a")),
    Case("map for a list", "POST", PODS, {**pod("n"), "spec": {"containers": {}}}),
    Case("text for an object", "POST", PODS, {**pod("n"), "spec": "x"}),
    Case("metadata is a list", "POST", CONFIG, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}),
    Case("labels with a number", "POST", CONFIG, config("n", metadata={"labels": {"a": 1}})),
    Case("name is a number", "POST", CONFIG, config("n", metadata={"name": 1})),
    Case("text for true", "POST", CONFIG, config("n", immutable="yes")),
    Case(
        "bad quantity",
        "POST",
        PODS,
        pod("n", container={"resources": {"limits": {"cpu": "a lot"}}}),
        {},
        "words",
    ),
    Case("bad time", "POST", CONFIG, config("n", metadata={"creationTimestamp": "yesterday"}), {}, "words"),
    Case("body of 3 MiB and one", "POST", CONFIG, "x" * (3 * 1024 * 1024 + 1)),
    Case("patch of 3 MiB and one", "PATCH", f"{CONFIG}/kept", "x" * (3 * 1024 * 1024 + 1), MERGE),
)

TYPES = (
    Case("content type nobody knows", "POST", CONFIG, config("t"), {"Content-Type": "text/plain"}),
    Case("content type that is none", "POST", CONFIG, config("t"), {"Content-Type": "nonsense"}),
    Case(
        "content type of a form",
        "PUT",
        f"{CONFIG}/kept",
        "a=b",
        {"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Case("patch as json", "PATCH", f"{CONFIG}/kept", {}, {"Content-Type": "application/json"}),
    Case("patch as text", "PATCH", f"{CONFIG}/kept", {}, {"Content-Type": "text/plain"}),
    Case("delete with a bad content type", "DELETE", f"{CONFIG}/kept", "{}", {"Content-Type": "text/plain"}),
    Case("accept an image", "GET", CONFIG, None, {"Accept": "image/png"}, same="words"),
    Case("accept an image of one", "GET", f"{CONFIG}/kept", None, {"Accept": "image/png"}, same="words"),
    Case(
        "accept a shape nobody knows",
        "GET",
        CONFIG,
        None,
        {"Accept": "application/json;as=Chair;g=meta.k8s.io;v=v1"},
        same="words",
    ),
    Case("method of a collection", "PUT", CONFIG, config("t")),
    Case("method of an object", "POST", f"{CONFIG}/kept", config("kept")),
    Case("patch of a collection", "PATCH", CONFIG, {}, MERGE),
    Case("delete of a subresource", "DELETE", f"{DEPLOYMENTS}/kept/scale"),
    Case("kind not served", "GET", "/api/v1/gadgets"),
    Case("group not served", "GET", "/apis/none.example.com/v1/gadgets"),
    Case("version not served", "GET", "/apis/apps/v9/deployments"),
    Case("subresource not served", "GET", f"{CONFIG}/kept/scale"),
    Case("create in no namespace", "POST", "/api/v1/configmaps", config("t")),
    Case("create in a missing namespace", "POST", "/api/v1/namespaces/none/configmaps", config("t")),
    Case("get in a missing namespace", "GET", "/api/v1/namespaces/none/configmaps/a"),
    Case("get what is not there", "GET", f"{CONFIG}/none"),
    Case("get a deployment that is not there", "GET", f"{DEPLOYMENTS}/none"),
    Case("delete what is not there", "DELETE", f"{CONFIG}/none"),
    Case("patch what is not there", "PATCH", f"{CONFIG}/none", {}, MERGE),
    Case("replace what is not there", "PUT", f"{CONFIG}/none", config("none", metadata={"uid": "x"})),
    Case("scale what is not there", "GET", f"{DEPLOYMENTS}/none/scale"),
    Case(
        "evict what is not there",
        "POST",
        f"{PODS}/none/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}},
    ),
)

QUERIES = (
    Case("label selector: operator", "GET", f"{CONFIG}?labelSelector=%3D"),
    Case("label selector: unfinished", "GET", f"{CONFIG}?labelSelector=a%20in%20(b"),
    Case("label selector: bad key", "GET", f"{CONFIG}?labelSelector=a%20b%3Dc"),
    Case("label selector: bad value", "GET", f"{CONFIG}?labelSelector=a%3D-b-"),
    Case("label selector: two operators", "GET", f"{CONFIG}?labelSelector=a%3D%3D%3Db"),
    Case("label selector: not a number", "GET", f"{CONFIG}?labelSelector=a%3Eb"),
    Case("field selector: unknown field", "GET", f"{CONFIG}?fieldSelector=data.a%3Db"),
    Case("field selector: unknown pod field", "GET", f"{PODS}?fieldSelector=spec.color%3Db"),
    Case("field selector: no operator", "GET", f"{CONFIG}?fieldSelector=metadata.name"),
    Case("field selector: bad escape", "GET", f"{CONFIG}?fieldSelector=metadata.name%3Da%5Cb"),
    Case("limit: text", "GET", f"{CONFIG}?limit=many"),
    Case("limit: negative", "GET", f"{CONFIG}?limit=-1"),
    Case("limit: too big", "GET", f"{CONFIG}?limit=99999999999999999999"),
    Case("continue: nonsense", "GET", f"{CONFIG}?limit=1&continue=nonsense"),
    Case("continue: not base64", "GET", f"{CONFIG}?limit=1&continue=%21%21"),
    Case(
        "continue: another form", "GET", f"{CONFIG}?limit=1&continue=eyJ2IjoidjAiLCJydiI6MSwic3RhcnQiOiJhIn0"
    ),
    Case(
        "continue: no version",
        "GET",
        f"{CONFIG}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
    ),
    Case(
        "continue with a version",
        "GET",
        f"{CONFIG}?limit=1&resourceVersion=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiJhIn0",
    ),
    Case("version: text", "GET", f"{CONFIG}?resourceVersion=new"),
    Case("version: negative", "GET", f"{CONFIG}?resourceVersion=-1"),
    Case("version: from the future", "GET", f"{CONFIG}?resourceVersion=99999999", None, {}, "details"),
    Case("version of a watch: text", "GET", f"{CONFIG}?watch=1&resourceVersion=new&timeoutSeconds=1"),
    Case("match without a version", "GET", f"{CONFIG}?resourceVersionMatch=Exact"),
    Case("match nobody knows", "GET", f"{CONFIG}?resourceVersion=1&resourceVersionMatch=Near"),
    Case("match exactly zero", "GET", f"{CONFIG}?resourceVersion=0&resourceVersionMatch=Exact"),
    Case("match with continue", "GET", f"{CONFIG}?resourceVersionMatch=Exact&continue=abc"),
    Case("match of a watch", "GET", f"{CONFIG}?watch=1&resourceVersion=1&resourceVersionMatch=Exact"),
    Case("initial events without a match", "GET", f"{CONFIG}?watch=1&sendInitialEvents=true"),
    Case("initial events of a list", "GET", f"{CONFIG}?sendInitialEvents=true"),
    Case(
        "initial events without bookmarks",
        "GET",
        f"{CONFIG}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
    ),
    Case("timeout: text", "GET", f"{CONFIG}?watch=1&timeoutSeconds=soon"),
    Case("watch: nonsense is true", "GET", f"{CONFIG}?watch=maybe&timeoutSeconds=1"),
    Case("dry run of some", "POST", f"{CONFIG}?dryRun=Some", config("t")),
    Case("dry run of some deletes", "DELETE", f"{CONFIG}/kept?dryRun=Some"),
    Case("dry run of some patches", "PATCH", f"{CONFIG}/kept?dryRun=Some", {}, MERGE),
    Case("field validation nobody knows", "POST", f"{CONFIG}?fieldValidation=Hard", config("t")),
    Case("manager too long", "POST", f"{CONFIG}?fieldManager={'m' * 129}", config("t")),
    Case("manager that cannot be printed", "POST", f"{CONFIG}?fieldManager=a%01b", config("t"), same="words"),
    Case("force of a merge patch", "PATCH", f"{CONFIG}/kept?force=true", {}, MERGE),
    Case("grace period: text", "DELETE", f"{CONFIG}/kept?gracePeriodSeconds=long"),
    Case("grace period in the body: text", "DELETE", f"{CONFIG}/kept", {"gracePeriodSeconds": "long"}),
    Case("propagation nobody knows", "DELETE", f"{CONFIG}/kept?propagationPolicy=Slow"),
    Case(
        "propagation and orphan",
        "DELETE",
        f"{CONFIG}/kept",
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Orphan",
            "orphanDependents": True,
        },
    ),
    Case("delete with broken options", "DELETE", f"{CONFIG}/kept", "{"),
    Case("delete with another kind", "DELETE", f"{CONFIG}/kept", config("kept")),
    Case("delete another uid", "DELETE", f"{CONFIG}/kept", {"preconditions": {"uid": "other"}}),
    Case("delete another version", "DELETE", f"{CONFIG}/kept", {"preconditions": {"resourceVersion": "1"}}),
)

FIELDS = (
    Case(
        "unknown field, strict", "POST", f"{CONFIG}?fieldValidation=Strict", config("f", spec={}, color="red")
    ),
    Case(
        "unknown field, warn",
        "POST",
        f"{CONFIG}?fieldValidation=Warn&dryRun=All",
        config("f", spec={}, color="red"),
    ),
    Case(
        "unknown field, ignore",
        "POST",
        f"{CONFIG}?fieldValidation=Ignore&dryRun=All",
        config("f", color="red"),
    ),
    Case("unknown field, nothing said", "POST", f"{CONFIG}?dryRun=All", config("f", color="red")),
    Case(
        "unknown fields within",
        "POST",
        f"{PODS}?fieldValidation=Strict",
        pod("f", container={"colour": 1, "resources": {"x": 1}}, metadata={"y": 1}),
    ),
    Case(
        "duplicate fields, strict",
        "POST",
        f"{CONFIG}?fieldValidation=Strict",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"data":{"k":"1"},"data":{"k":"2"}}',
    ),
    Case(
        "duplicate fields, warn",
        "POST",
        f"{CONFIG}?dryRun=All",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"}}',
    ),
    Case(
        "duplicate keys of a map",
        "POST",
        f"{CONFIG}?dryRun=All",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}',
    ),
    Case(
        "duplicate and unknown",
        "POST",
        f"{CONFIG}?fieldValidation=Strict",
        '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"x":1}',
    ),
    Case(
        "duplicate fields in yaml",
        "POST",
        f"{CONFIG}?fieldValidation=Strict",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n",
        YAML,
        same="words",
    ),
    Case(
        "unknown field of a patch, strict",
        "PATCH",
        f"{CONFIG}/kept?fieldValidation=Strict",
        {"color": "red"},
        MERGE,
        same="words",
    ),
    Case(
        "unknown field of a strategic patch, strict",
        "PATCH",
        f"{CONFIG}/kept?fieldValidation=Strict",
        {"color": "red"},
        STRATEGIC,
    ),
    Case(
        "unknown field of a json patch, strict",
        "PATCH",
        f"{CONFIG}/kept?fieldValidation=Strict",
        [{"op": "add", "path": "/color", "value": "red"}],
        JSON_PATCH,
        same="words",
    ),
    Case(
        "unknown field of an apply, strict",
        "PATCH",
        f"{CONFIG}/kept?fieldValidation=Strict&fieldManager=m",
        config("kept", color="red"),
        APPLY,
    ),
    Case(
        "unknown field of a put, strict",
        "PUT",
        f"{CONFIG}/kept?fieldValidation=Strict",
        config("kept", color="red"),
    ),
    Case("case matters", "POST", f"{CONFIG}?fieldValidation=Strict", config("f", Data={"a": "b"})),
)

NAMES = (
    Case(
        "namespace too long",
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a" * 64}},
    ),
    Case("data key too long", "POST", CONFIG, config("l", data={"a" * 254: "b"})),
    Case("label key too long", "POST", CONFIG, config("l", metadata={"labels": {"a" * 64: "b"}})),
    Case("data key of dots", "POST", CONFIG, config("l", data={"..": "b"})),
    Case("data key that begins with dots", "POST", CONFIG, config("l", data={"..a": "b"})),
    Case("container name too long", "POST", PODS, pod("p", container={"name": "a" * 64})),
    Case("no name", "POST", CONFIG, config()),
    Case("empty name", "POST", CONFIG, config("")),
    Case("capitals", "POST", CONFIG, config("Upper")),
    Case("underscore", "POST", CONFIG, config("a_b")),
    Case("slash", "POST", CONFIG, config("a/b")),
    Case("percent and dots", "POST", CONFIG, config("..")),
    Case("too long", "POST", CONFIG, config("a" * 254)),
    Case("bad prefix", "POST", CONFIG, config(metadata={"generateName": "Bad_"})),
    Case(
        "namespace with dots",
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}},
    ),
    Case("deployment with capitals", "POST", DEPLOYMENTS, {**deployment("a"), "metadata": {"name": "A"}}),
    Case("pod with a bad name", "POST", PODS, pod("A_")),
    Case("bad label key", "POST", CONFIG, config("l", metadata={"labels": {"a b": "c"}})),
    Case("empty label key", "POST", CONFIG, config("l", metadata={"labels": {"": "c"}})),
    Case("label key with two slashes", "POST", CONFIG, config("l", metadata={"labels": {"a/b/c": "c"}})),
    Case("label prefix with capitals", "POST", CONFIG, config("l", metadata={"labels": {"A.b/c": "c"}})),
    Case("bad label value", "POST", CONFIG, config("l", metadata={"labels": {"a": "b c"}})),
    Case("long label value", "POST", CONFIG, config("l", metadata={"labels": {"a": "b" * 64}})),
    Case("bad annotation key", "POST", CONFIG, config("l", metadata={"annotations": {"a b": "c"}})),
    Case(
        "annotations of 256 KiB and one",
        "POST",
        CONFIG,
        config("l", metadata={"annotations": {"a": "b" * (256 * 1024)}}),
    ),
    Case("bad finalizer", "POST", CONFIG, config("l", metadata={"finalizers": ["bad finalizer"]})),
    Case("finalizer without a prefix", "POST", CONFIG, config("l", metadata={"finalizers": ["mine"]})),
    Case(
        "two ways to delete",
        "POST",
        CONFIG,
        config("l", metadata={"finalizers": ["orphan", "foregroundDeletion"]}),
    ),
    Case("owner without anything", "POST", CONFIG, config("l", metadata={"ownerReferences": [{}]})),
    Case(
        "owner of a bad version",
        "POST",
        CONFIG,
        config(
            "l",
            metadata={
                "ownerReferences": [{"apiVersion": "a/b/c", "kind": "ConfigMap", "name": "x", "uid": "u"}]
            },
        ),
    ),
    Case(
        "owner is an event",
        "POST",
        CONFIG,
        config(
            "l",
            metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"}]},
        ),
    ),
    Case(
        "two controllers",
        "POST",
        CONFIG,
        config(
            "l",
            metadata={
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": n, "uid": n, "controller": True}
                    for n in ("x", "y")
                ]
            },
        ),
    ),
    Case("bad data key", "POST", CONFIG, config("l", data={"a b": "c"})),
    Case("data and binary data", "POST", CONFIG, config("l", data={"a": "b"}, binaryData={"a": "Yg=="})),
    Case("data too large", "POST", CONFIG, config("l", data={"a": "b" * (1024 * 1024 + 1)})),
    Case("binary data that is none", "POST", CONFIG, config("l", binaryData={"a": "%%"}), {}, "words"),
    Case("version given at create", "POST", CONFIG, config("l", metadata={"resourceVersion": "5"})),
    Case("another namespace", "POST", CONFIG, config("l", metadata={"namespace": "default"})),
    Case("exists", "POST", CONFIG, config("kept")),
    Case("exists, of a group", "POST", DEPLOYMENTS, deployment("kept")),
    Case(
        "namespace on a node",
        "POST",
        "/api/v1/nodes",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}},
    ),
)

RULES = (
    Case("pod without containers", "POST", PODS, {**pod("p"), "spec": {}}),
    Case("pod without an image", "POST", PODS, pod("p", container={"image": ""})),
    Case(
        "two containers of a name",
        "POST",
        PODS,
        {**pod("p"), "spec": {"containers": [{"name": "c", "image": "i"}] * 2}},
    ),
    Case("container with a bad name", "POST", PODS, pod("p", container={"name": "C_"})),
    Case("restart policy nobody knows", "POST", PODS, pod("p", restartPolicy="Sometimes")),
    Case("port out of range", "POST", PODS, pod("p", container={"ports": [{"containerPort": 70000}]})),
    Case(
        "limit under request",
        "POST",
        PODS,
        pod("p", container={"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
    ),
    Case("negative request", "POST", PODS, pod("p", container={"resources": {"requests": {"cpu": "-1"}}})),
    Case("negative grace period", "POST", PODS, pod("p", terminationGracePeriodSeconds=-5)),
    Case("priority class that is not there", "POST", PODS, pod("p", priorityClassName="none")),
    Case("bad toleration", "POST", PODS, pod("p", tolerations=[{"operator": "Near", "key": "a"}])),
    Case("bad node selector", "POST", PODS, pod("p", nodeSelector={"a b": "c"})),
    Case("negative replicas", "POST", DEPLOYMENTS, deployment("d", replicas=-1)),
    Case("selector that does not match", "POST", DEPLOYMENTS, deployment("d", labels={"other": "x"})),
    Case(
        "no selector",
        "POST",
        DEPLOYMENTS,
        {**deployment("d"), "spec": {"template": deployment("d")["spec"]["template"]}},
    ),
    Case(
        "no spec",
        "POST",
        DEPLOYMENTS,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}},
    ),
    Case("strategy nobody knows", "POST", DEPLOYMENTS, deployment("d", strategy={"type": "Slow"})),
    Case(
        "both zero",
        "POST",
        DEPLOYMENTS,
        deployment("d", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
    ),
    Case("bad percent", "POST", DEPLOYMENTS, deployment("d", strategy={"rollingUpdate": {"maxSurge": "x%"}})),
    Case(
        "deployment restarts never",
        "POST",
        DEPLOYMENTS,
        deployment(
            "d",
            template={
                "metadata": {"labels": {"app": "d"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            },
        ),
    ),
    Case(
        "autoscaler from 5 to 2",
        "POST",
        f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {
                "minReplicas": 5,
                "maxReplicas": 2,
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            },
        },
    ),
    Case(
        "autoscaler of nothing",
        "POST",
        f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers",
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {},
        },
    ),
    Case(
        "budget with both",
        "POST",
        f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "maxUnavailable": 1, "selector": {}},
        },
    ),
    Case(
        "job that restarts always",
        "POST",
        f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j"},
            "spec": {
                "template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}
            },
        },
    ),
    Case(
        "cron job that cannot be read",
        "POST",
        f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs",
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "j"},
            "spec": {
                "schedule": "soon",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
                        }
                    }
                },
            },
        },
    ),
    Case(
        "taint nobody knows",
        "POST",
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "a", "effect": "Bad"}]},
        },
    ),
    Case(
        "priority too high",
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000000001,
        },
    ),
    Case(
        "stateful set with a bad policy",
        "POST",
        f"{APPS}/statefulsets",
        {
            **deployment("s"),
            "kind": "StatefulSet",
            "spec": {**deployment("s")["spec"], "podManagementPolicy": "Wild"},
        },
    ),
    Case(
        "daemon set without a match",
        "POST",
        f"{APPS}/daemonsets",
        {**deployment("s", labels={"x": "y"}), "kind": "DaemonSet"},
    ),
    Case(
        "lease of no time",
        "POST",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l"},
            "spec": {"leaseDurationSeconds": 0},
        },
    ),
)

CHANGES = (
    Case("stale version", "PUT", f"{CONFIG}/kept", config("kept", metadata={"resourceVersion": "1"})),
    Case(
        "stale version of a patch", "PATCH", f"{CONFIG}/kept", {"metadata": {"resourceVersion": "1"}}, MERGE
    ),
    Case(
        "version that is a word", "PUT", f"{CONFIG}/kept", config("kept", metadata={"resourceVersion": "new"})
    ),
    Case("another uid", "PUT", f"{CONFIG}/kept", config("kept", metadata={"uid": "other"})),
    Case("another uid in a patch", "PATCH", f"{CONFIG}/kept", {"metadata": {"uid": "other"}}, MERGE),
    Case("another name in the body", "PUT", f"{CONFIG}/kept", config("other")),
    Case("no name in the body", "PUT", f"{CONFIG}/kept", config()),
    Case(
        "another namespace in the body",
        "PUT",
        f"{CONFIG}/kept",
        config("kept", metadata={"namespace": "default"}),
    ),
    Case("another name in a patch", "PATCH", f"{CONFIG}/kept", {"metadata": {"name": "other"}}, MERGE),
    Case(
        "another namespace in a patch",
        "PATCH",
        f"{CONFIG}/kept",
        {"metadata": {"namespace": "default"}},
        MERGE,
    ),
    Case("another kind in the body", "PUT", f"{CONFIG}/kept", pod("kept")),
    Case("another kind in a patch", "PATCH", f"{CONFIG}/kept", {"kind": "Pod"}, MERGE, same="words"),
    Case("merge patch is a list", "PATCH", f"{CONFIG}/kept", "[]", MERGE),
    Case("merge patch is a text", "PATCH", f"{CONFIG}/kept", '"x"', MERGE, "words"),
    Case("merge patch is broken", "PATCH", f"{CONFIG}/kept", "{", MERGE, "words"),
    Case("merge patch breaks a type", "PATCH", f"{CONFIG}/kept", {"data": {"a": 1}}, MERGE, same="words"),
    Case("merge patch breaks a rule", "PATCH", f"{DEPLOYMENTS}/kept", {"spec": {"replicas": -1}}, MERGE),
    Case("strategic patch is a list", "PATCH", f"{CONFIG}/kept", "[]", STRATEGIC, "words"),
    Case("strategic patch is broken", "PATCH", f"{CONFIG}/kept", "{", STRATEGIC, "words"),
    Case(
        "strategic directive nobody knows",
        "PATCH",
        f"{DEPLOYMENTS}/kept",
        {"spec": {"$patch": "eat"}},
        STRATEGIC,
    ),
    Case(
        "strategic item without its key",
        "PATCH",
        f"{DEPLOYMENTS}/kept",
        {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
        STRATEGIC,
    ),
    Case("json patch is an object", "PATCH", f"{CONFIG}/kept", "{}", JSON_PATCH, "words"),
    Case(
        "json patch without a path",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "add", "value": 1}],
        JSON_PATCH,
        "words",
    ),
    Case(
        "json patch nobody knows",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "eat", "path": "/data"}],
        JSON_PATCH,
        same="words",
    ),
    Case(
        "json patch removes what is not there",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "remove", "path": "/data/none"}],
        JSON_PATCH,
        same="words",
    ),
    Case(
        "json patch replaces what is not there",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "replace", "path": "/none/a", "value": 1}],
        JSON_PATCH,
        same="words",
    ),
    Case(
        "json patch whose test fails",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "test", "path": "/data/a", "value": "z"}],
        JSON_PATCH,
        same="words",
    ),
    Case(
        "json patch of the root",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "replace", "path": "", "value": []}],
        JSON_PATCH,
        "words",
    ),
    Case(
        "json patch of too many",
        "PATCH",
        f"{CONFIG}/kept",
        [{"op": "add", "path": "/data/a", "value": "1"}] * 10_001,
        JSON_PATCH,
    ),
    Case("apply without a manager", "PATCH", f"{CONFIG}/kept", config("kept"), APPLY),
    Case(
        "apply without a kind",
        "PATCH",
        f"{CONFIG}/kept?fieldManager=m",
        {"metadata": {"name": "kept"}},
        APPLY,
    ),
    Case("apply that cannot be read", "PATCH", f"{CONFIG}/kept?fieldManager=m", "a: [", APPLY, "words"),
    Case("apply of another name", "PATCH", f"{CONFIG}/kept?fieldManager=m", config("other"), APPLY),
    Case("apply of another kind", "PATCH", f"{CONFIG}/kept?fieldManager=m", pod("kept"), APPLY),
    Case(
        "apply with managed fields",
        "PATCH",
        f"{CONFIG}/kept?fieldManager=m",
        config("kept", metadata={"managedFields": []}),
        APPLY,
    ),
    Case(
        "apply of an unknown field",
        "PATCH",
        f"{CONFIG}/kept?fieldManager=m",
        config("kept", color="red"),
        APPLY,
    ),
    Case(
        "apply of another uid",
        "PATCH",
        f"{CONFIG}/none?fieldManager=m",
        config("none", metadata={"uid": "x"}),
        APPLY,
    ),
    Case(
        "selector may not change",
        "PATCH",
        f"{DEPLOYMENTS}/kept",
        {"spec": {"selector": {"matchLabels": {"b": "c"}}, "template": {"metadata": {"labels": {"b": "c"}}}}},
        MERGE,
    ),
    Case("immutable config", "PATCH", f"{CONFIG}/frozen", {"data": {"a": "other"}}, MERGE),
    Case("immutable config thaws", "PATCH", f"{CONFIG}/frozen", {"immutable": False}, MERGE),
    Case(
        "pod may not change", "PATCH", f"{PODS}/kept", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE, "words"
    ),
    Case(
        "finalizer added to what goes",
        "PATCH",
        f"{CONFIG}/going",
        {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}},
        MERGE,
    ),
    Case(
        "scale below zero",
        "PUT",
        f"{DEPLOYMENTS}/kept/scale",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "kept", "namespace": NAMESPACE},
            "spec": {"replicas": -1},
        },
    ),
    Case(
        "scale of another name",
        "PUT",
        f"{DEPLOYMENTS}/kept/scale",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "other", "namespace": NAMESPACE},
            "spec": {"replicas": 1},
        },
    ),
    Case("scale of another kind", "PUT", f"{DEPLOYMENTS}/kept/scale", deployment("kept")),
    Case(
        "scale of a stale version",
        "PUT",
        f"{DEPLOYMENTS}/kept/scale",
        {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": "kept", "namespace": NAMESPACE, "resourceVersion": "1"},
            "spec": {"replicas": 1},
        },
    ),
    Case(
        "binding without a target",
        "POST",
        f"{PODS}/kept/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "kept"}, "target": {}},
    ),
    Case(
        "binding of another name",
        "POST",
        f"{PODS}/kept/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "other"},
            "target": {"kind": "Node", "name": "n"},
        },
    ),
    Case(
        "eviction of another name",
        "POST",
        f"{PODS}/kept/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}},
    ),
    Case(
        "lease without a version",
        "PUT",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/kept",
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "kept", "namespace": NAMESPACE},
            "spec": {},
        },
    ),
    Case(
        "priority may not change",
        "PATCH",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        {"value": 5},
        MERGE,
    ),
    Case("default namespace stays", "DELETE", "/api/v1/namespaces/default"),
)

CUSTOM = (
    Case("schema: wrong type", "POST", WIDGETS, widget("w", size="big")),
    Case("schema: wrong types", "POST", WIDGETS, widget("w", size="big", note=1, tags="x")),
    Case("schema: fraction", "POST", WIDGETS, widget("w", size=1.5), same="words"),
    Case("custom: no name", "POST", WIDGETS, {**widget("w"), "metadata": {}}),
    Case("custom: no type", "POST", WIDGETS, {"metadata": {"name": "w"}}),
    Case("custom: another kind", "POST", WIDGETS, {**widget("w"), "kind": "Gadget"}),
    Case(
        "custom: another version",
        "POST",
        WIDGETS,
        {**widget("w"), "apiVersion": "bad.example.com/v9"},
        same="words",
    ),
    Case(
        "custom: unknown field, strict", "POST", f"{WIDGETS}?fieldValidation=Strict", widget("w", color="red")
    ),
    Case(
        "custom: unknown field of an apply",
        "PATCH",
        f"{WIDGETS}/applied?fieldManager=m",
        widget("applied", color="red"),
        APPLY,
    ),
    Case("deployment: field selector", "GET", f"{DEPLOYMENTS}?fieldSelector=spec.a%3Db"),
    Case("replica set: field selector", "GET", f"{APPS}/replicasets?fieldSelector=spec.a%3Db"),
    Case("node: field selector", "GET", "/api/v1/nodes?fieldSelector=spec.a%3Db"),
    Case("namespace: field selector", "GET", "/api/v1/namespaces?fieldSelector=spec.a%3Db"),
    Case("event: field selector", "GET", f"{CORE}/events?fieldSelector=spec.a%3Db"),
    Case(
        "job: field selector", "GET", f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs?fieldSelector=spec.a%3Db"
    ),
    Case("stateful set: field selector", "GET", f"{APPS}/statefulsets?fieldSelector=spec.a%3Db"),
    Case("lease: field selector", "GET", "/apis/coordination.k8s.io/v1/leases?fieldSelector=spec.a%3Db"),
    Case(
        "pod: apply of an unknown field within",
        "PATCH",
        f"{PODS}/kept?fieldManager=m",
        pod("kept", container={"colour": 1}),
        APPLY,
        same="words",
    ),
    Case("custom: unknown field, warn", "POST", f"{WIDGETS}?dryRun=All", widget("w", color="red")),
    Case("custom: replace without a version", "PUT", f"{WIDGETS}/old", widget("old", size=5)),
    Case("custom: strategic patch", "PATCH", f"{WIDGETS}/old", {}, STRATEGIC),
    Case("custom: field selector", "GET", f"{WIDGETS}?fieldSelector=spec.size%3D1"),
    Case("custom: not there", "GET", f"{WIDGETS}/none"),
    Case(
        "custom: the schema narrows",
        "PATCH",
        f"{DEFINITIONS}/widgets.bad.example.com",
        {"spec": {"versions": definition(STRICT)["spec"]["versions"]}},
        MERGE,
        "code",
    ),
)

NARROWED = (
    Case("narrowed: read", "GET", f"{WIDGETS}/old", None, {}, "code"),
    Case("narrowed: list", "GET", WIDGETS, None, {}, "code"),
    Case("narrowed: create", "POST", WIDGETS, widget("new", size=20, note="much too long", tags=["c"])),
    Case(
        "narrowed: a label may change",
        "PATCH",
        f"{WIDGETS}/old",
        {"metadata": {"labels": {"a": "b"}}},
        MERGE,
        "code",
    ),
    Case(
        "narrowed: another field may change",
        "PATCH",
        f"{WIDGETS}/old",
        {"spec": {"note": "short"}},
        MERGE,
        "code",
    ),
    Case("narrowed: what is wrong may not change", "PATCH", f"{WIDGETS}/old", {"spec": {"size": 30}}, MERGE),
    Case(
        "narrowed: what is right may not become wrong",
        "PATCH",
        f"{WIDGETS}/old",
        {"spec": {"note": "much too long"}},
        MERGE,
    ),
    Case(
        "narrowed: a wrong item may not be added",
        "PATCH",
        f"{WIDGETS}/old",
        {"spec": {"tags": ["c", "d"]}},
        MERGE,
    ),
    Case("narrowed: delete", "DELETE", f"{WIDGETS}/old", None, {}, "code"),
    Case(
        "definition: group may not change",
        "PATCH",
        f"{DEFINITIONS}/widgets.bad.example.com",
        {"spec": {"scope": "Cluster"}},
        MERGE,
    ),
    Case(
        "definition: wrong name",
        "POST",
        DEFINITIONS,
        {**definition(FREE), "metadata": {"name": "gadgets.bad.example.com"}},
    ),
    Case(
        "definition: no schema",
        "POST",
        DEFINITIONS,
        {
            **definition(FREE),
            "metadata": {"name": "widgets.b.example.com"},
            "spec": {
                **definition(FREE)["spec"],
                "group": "b.example.com",
                "versions": [{"name": "v1", "served": True, "storage": True}],
            },
        },
    ),
    Case(
        "definition: not structural",
        "POST",
        DEFINITIONS,
        {
            **definition(FREE),
            "metadata": {"name": "widgets.b.example.com"},
            "spec": {
                **definition(FREE)["spec"],
                "group": "b.example.com",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}},
                    }
                ],
            },
        },
    ),
)

SETUP = (
    Case(
        "setup: namespace",
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {},
        "code",
    ),
    Case("setup: config", "POST", CONFIG, config("kept", data={"a": "b"}), {}, "code"),
    Case("setup: frozen", "POST", CONFIG, config("frozen", data={"a": "b"}, immutable=True), {}, "code"),
    Case(
        "setup: going",
        "POST",
        CONFIG,
        config("going", metadata={"finalizers": ["example.com/a"]}),
        {},
        "code",
    ),
    Case("setup: it goes", "DELETE", f"{CONFIG}/going", None, {}, "code"),
    Case("setup: deployment", "POST", DEPLOYMENTS, deployment("kept"), {}, "code"),
    Case("setup: pod", "POST", PODS, pod("kept"), {}, "code"),
    Case(
        "setup: lease",
        "POST",
        f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kept"}},
        {},
        "code",
    ),
    Case("setup: definition", "POST", DEFINITIONS, definition(FREE), {}, "code"),
    Case("setup: widget", "POST", WIDGETS, widget("old", size=20, note="x", tags=["c"]), {}, "code"),
)

CASES = (*SETUP, *BROKEN, *TYPES, *QUERIES, *FIELDS, *NAMES, *RULES, *CHANGES, *CUSTOM, *NARROWED)
"""All of them, in the order in which they are sent."""

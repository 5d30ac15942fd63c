from __future__ import annotations

import json

import pytest
import yaml
from tests.objects import samples

from kubetide.embedded.apiserver.manifests.manifest import ManifestError, load_manifests
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, Kind

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        resources:
          requests: {cpu: 250m, memory: 1Gi}
"""


def problems(text):
    with pytest.raises(ManifestError) as caught:
        load_manifests(text, "web.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize("dump", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_written_objects_come_back_as_written(dump):
    """YAML and JSON give the same objects, without defaults."""
    for obj in samples.ALL:
        ((kind, value),) = load_manifests(dump(obj), "x")
        assert value == obj
        assert (kind.api_version, kind.kind) == (obj["apiVersion"], obj["kind"])


def test_documents_and_lists_are_taken_apart():
    """Many documents, empty ones and List kinds give one flat list of objects."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [samples.pod(), samples.hpa()]}
    bare = {name: value for name, value in samples.pod().items() if name in {"metadata", "spec"}}
    typed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [bare]}
    text = "---\n# nothing\n---\n" + WEB + "---\n" + json.dumps(listed) + "\n---\n" + yaml.safe_dump(typed)
    kinds = [(kind.kind, value["kind"]) for kind, value in load_manifests(text, "x")]
    assert kinds == [(name, name) for name in ("Deployment", "Pod", "HorizontalPodAutoscaler", "Pod")]
    assert load_manifests("", "x") == []
    assert load_manifests(b"\xef\xbb\xbf# only a comment\n", "x") == []


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("yes", True), ("off", False), ("y", True), ("True", True), ("'yes'", "yes"), ("!!str yes", "yes"),
        ("12", 12), ("0777", 511), ("0o17", 15), ("0x1F", 31), ("1_000", 1000), ("-5", -5), ("1e3", 1000),
        ("0.5", 0.5), (".5", 0.5), ("3.0", 3), ("12:30", "12:30"), ("2026-01-31", "2026-01-31"), ("1.2.3", "1.2.3"),
        ("089", 89), ("'12'", "12"), ("100m", "100m"), ("|\n    a\n    b\n", "a\nb\n"), ("<<", "<<"),
    ],
)  # fmt: skip
def test_plain_scalars_mean_what_they_mean_to_kubectl(written, expected):
    """Scalars are read by YAML 1.1's rules as Kubernetes tools apply them."""
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  containers: [{{name: a, image: b}}]\n  hostname: {written}\n"
    ((_, value),) = load_manifests(text, "x")
    assert value["spec"]["hostname"] == expected
    assert type(value["spec"]["hostname"]) is type(expected)


def test_anchors_merge_and_nulls_vanish():
    """Anchors and merge keys are expanded, null members count as absent, and keys are texts."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  labels: &l {a: b}\n"
        "  annotations: {<<: *l, c: d, e: ~}\ndata: {1: x, true: 'y'}\n"
    )
    ((_, value),) = load_manifests(text, "x")
    assert value["metadata"]["annotations"] == {"a": "b", "c": "d"}
    assert value["data"] == {"1": "x", "true": "y"}


PLACE = "document 1: Deployment shop/web: "


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        ("  replicas: 3", "  replcas: 3", f"web.yaml:7: {PLACE}spec.replcas: unknown field; did you mean replicas?"),
        ("spec:\n  replicas: 3", "replicas: 3\nspec:", f"web.yaml:6: {PLACE}replicas: belongs in spec: write spec.replicas"),
        (
            "  replicas: 3",
            "  replicas: three",
            f'web.yaml:7: {PLACE}spec.replicas: Invalid value: "three": expected a whole number, got the text "three"',
        ),
        (
            "  replicas: 3",
            "  replicas: 3000000000",
            (f"web.yaml:7: {PLACE}spec.replicas: Invalid value: 3000000000: "
            "must be between -2147483648 and 2147483647, inclusive"),
        ),
        (
            "cpu: 250m",
            "cpu: abc",
            (f"web.yaml:16: {PLACE}spec.template.spec.containers[0].resources.requests[cpu]: "
            'Invalid value: "abc": quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ),
        (
            "cpu: 250m",
            "cpu: [1]",
            (f"web.yaml:16: {PLACE}spec.template.spec.containers[0].resources.requests.cpu: Invalid value: [1]: "
            "expected a number or a text, got a list"),
        ),
        (
            "cpu: 250m",
            "cpu: -1",
            (f"web.yaml:16: {PLACE}spec.template.spec.containers[0].resources.requests[cpu]: "
            'Invalid value: "-1": must be greater than or equal to 0'),
        ),
        (
            "        image: nginx",
            "        image: nginx\n        tolerations: []",
            f"web.yaml:15: {PLACE}spec.template.spec.containers[0].tolerations: unknown field",
        ),
        (
            "        image: nginx",
            "        image: nginx\n        ImagePullPolicy: Never",
            (f"web.yaml:15: {PLACE}spec.template.spec.containers[0].ImagePullPolicy: unknown field; "
            "did you mean imagePullPolicy?"),
        ),
        (
            "labels: {app: web}",
            "labels: {app: web, on: yes}",
            (f"web.yaml:10: {PLACE}spec.template.metadata.labels.true: Invalid value: true: expected a text, got true"
            "; YAML reads yes, no, on and off as true and false, so write the word in quotes"),
        ),
        (
            "kind: Deployment",
            "kind: Deploymnt",
            'web.yaml:2: document 1: Deploymnt shop/web: kind: "Deploymnt" is not known; did you mean Deployment?',
        ),
        (
            "apps/v1",
            "extensions/v1beta1",
            f'web.yaml:1: {PLACE}apiVersion: "extensions/v1beta1" does not serve Deployment: write apps/v1',
        ),
        ("apiVersion: apps/v1\n", "", f"web.yaml:1: {PLACE}apiVersion: is missing: Deployment is apps/v1"),
        (
            "  name: web\n",
            "",
            "web.yaml:4: document 1: Deployment shop/: metadata.name: is missing: give the object a name",
        ),
        ("kind: Deployment\n", "", "web.yaml:1: document 1: object shop/web: kind: is missing: write for example kind: Deployment"),
        ("  replicas: 3", "  replicas: 3\n  replicas: 4", 'web.yaml:8: document 1: key "replicas" is given twice in one map'),
        ("  replicas: 3", "\treplicas: 3", "web.yaml:7: document 1: malformed YAML: found character that cannot start any token"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_and_its_way_out(find, replace, expected):
    """A mistake in a manifest is reported with file, line, document, object, field and the fix."""
    assert find in WEB
    assert problems(WEB.replace(find, replace, 1)) == [expected]


def test_all_problems_of_a_file_are_reported_at_once():
    """Every document is checked, and lines count through the whole file."""
    bad = (
        WEB.replace("replicas: 3", "replicas: -1")
        + "---\n7\n---\n"
        + WEB.replace("kind: D", "kind: Wombat\nx: D")
    )
    found = problems(bad)
    assert [line.partition(" ")[0] for line in found] == ["web.yaml:7:", "web.yaml:18:", "web.yaml:21:"]
    assert 'document 3: Wombat shop/web: kind: "Wombat" is not known; known kinds are CSIDriver, ' in found[2]


@pytest.mark.parametrize(
    "text", ["[" * 5000, "[" * 100_000, '{"a":' * 5000, "- " * 5000 + "a", "a: " + "[" * 300 + "]" * 300]
)
def test_deep_nesting_is_refused(text):
    """A text made to exhaust the stack is refused like any other bad text."""
    assert problems(text) == ["web.yaml:1: document 1: the value is nested too deeply"]


def test_aliases_may_not_blow_a_text_up():
    """A text of a few hundred bytes that expands to millions of values is refused before they are made."""
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]")
    assert problems("\n".join(lines)) == [
        "web.yaml:1: document 1: the value is nested too deeply or too large"
    ]


def test_a_number_without_end_is_refused():
    """It would take longer to read than to write."""
    (problem,) = problems("a: " + "9" * 5000)
    assert "is too large for a number" in problem


def test_what_is_not_text_is_refused_with_its_line():
    """The error for bytes that are not UTF-8 has their line."""
    assert problems(b"a: b\nc: \xff\n") == ["web.yaml:2: document 1: the text is not UTF-8"]


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: crontabs, kind: CronTab, shortNames: [ct]}
  versions:
  - {name: v1, served: true, storage: true, subresources: {status: {}, scale: {}}}
  - {name: v0, served: false, storage: false}
"""
TAB = """
apiVersion: example.com/v1
kind: CronTab
metadata: {name: tab}
spec: {anything: 1}
"""
CRON_TABS = Kind(
    "example.com",
    "v1",
    "CronTab",
    "crontabs",
    dict,
    namespaced=False,
    subresources=("status", "scale"),
    short_names=("ct",),
)


def test_custom_objects_follow_their_definition():
    """A definition makes its kind known to the documents after it, and to files that are read later."""
    (first, _), (second, _) = load_manifests(f"{DEFINITION}---{TAB}", "x")
    assert (first, second) == (CUSTOM_RESOURCE_DEFINITIONS, CRON_TABS)
    known = {}
    load_manifests(DEFINITION, "x", custom=known)
    assert known == {("example.com/v1", "CronTab"): CRON_TABS}
    [(kind, value)] = load_manifests(TAB, "y", custom=known)
    assert (kind, value["spec"]) == (CRON_TABS, {"anything": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{TAB}---{DEFINITION}", '"CronTab" is not known; known kinds are .* before it brings$'),
        (f"{DEFINITION}---{TAB.replace('v1', 'v0')}", 'apiVersion: "example.com/v0" does not serve CronTab'),
        (f"{DEFINITION}---{TAB.replace('name: tab', '')}", "metadata.name: is missing"),
        (f"{DEFINITION}---{TAB.replace('CronTab', 'CornTab')}", "did you mean CronTab"),
        (DEFINITION.replace("served: true", "served: 1"), r"spec.versions\[0\].served: .*expected"),
    ],
)
def test_custom_objects_without_a_definition(text, words):
    """An object before its definition, of a version that is not served, or without a name is an error."""
    with pytest.raises(ManifestError, match=words):
        load_manifests(text, "x")


def test_a_kind_that_is_defined_is_not_passed_over():
    """A kind that nobody reads is skipped, unless its definition says that somebody does."""
    monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\n"
    skipped = []
    assert load_manifests(monitor, "x", skipped=skipped) == []
    assert skipped == ["ServiceMonitor"]
    known = {("monitoring.coreos.com/v1", "ServiceMonitor"): CRON_TABS}
    assert len(load_manifests(monitor, "x", skipped=skipped, custom=known)) == 1


def test_vpa_objects_of_v1beta2_are_read_as_v1():
    """All of its fields are in v1; what was before it, with a selector in the place of a target, is refused."""
    target = "{apiVersion: apps/v1, kind: Deployment, name: web}"
    text = (
        "apiVersion: autoscaling.k8s.io/%s\nkind: VerticalPodAutoscaler\nmetadata: {name: web}\n"
        f"spec: {{targetRef: {target}, updatePolicy: {{updateMode: 'Off'}}}}\n"
    )
    assert load_manifests(text % "v1beta2", "vpa.yaml") == load_manifests(text % "v1", "vpa.yaml")
    with pytest.raises(
        ManifestError, match=r"v1beta1. does not serve VerticalPodAutoscaler: write autoscaling.k8s.io/v1"
    ):
        load_manifests(text % "v1beta1", "vpa.yaml")

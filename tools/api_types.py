"""Makes the table of API types that protobuf bodies are read and the API is described by.

    python tools/api_types.py MODULES > src/kubetide/objects/api_types.json

MODULES is the folder of the Go module cache that holds k8s.io/api@v0.36.2 and
k8s.io/apimachinery@v0.36.2 (``go env GOMODCACHE``). Taken from there are names, numbers and types
of fields, which are the API's interface; no text.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

VERSION = "v0.36.2"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
PACKAGES = {
    "io.k8s.api.core.v1": "k8s.io/api@{v}/core/v1",
    "io.k8s.api.apps.v1": "k8s.io/api@{v}/apps/v1",
    "io.k8s.api.autoscaling.v1": "k8s.io/api@{v}/autoscaling/v1",
    "io.k8s.api.autoscaling.v2": "k8s.io/api@{v}/autoscaling/v2",
    "io.k8s.api.batch.v1": "k8s.io/api@{v}/batch/v1",
    "io.k8s.api.policy.v1": "k8s.io/api@{v}/policy/v1",
    "io.k8s.api.coordination.v1": "k8s.io/api@{v}/coordination/v1",
    "io.k8s.api.scheduling.v1": "k8s.io/api@{v}/scheduling/v1",
    "io.k8s.api.admissionregistration.v1": "k8s.io/api@{v}/admissionregistration/v1",
    "io.k8s.api.storage.v1": "k8s.io/api@{v}/storage/v1",
    "io.k8s.api.resource.v1": "k8s.io/api@{v}/resource/v1",
    "io.k8s.api.networking.v1": "k8s.io/api@{v}/networking/v1",
    "io.k8s.api.rbac.v1": "k8s.io/api@{v}/rbac/v1",
    "io.k8s.api.authorization.v1": "k8s.io/api@{v}/authorization/v1",
    "io.k8s.api.authentication.v1": "k8s.io/api@{v}/authentication/v1",
    META: "k8s.io/apimachinery@{v}/pkg/apis/meta/v1",
}
ROOTS = {
    "io.k8s.api.core.v1": "Pod Node Namespace Event ConfigMap Binding PersistentVolume PersistentVolumeClaim "
    "PodTemplate Service Secret ServiceAccount ResourceQuota",
    "io.k8s.api.apps.v1": "Deployment ReplicaSet DaemonSet StatefulSet ControllerRevision",
    "io.k8s.api.autoscaling.v1": "HorizontalPodAutoscaler Scale",
    "io.k8s.api.autoscaling.v2": "HorizontalPodAutoscaler",
    "io.k8s.api.batch.v1": "Job CronJob",
    "io.k8s.api.policy.v1": "PodDisruptionBudget Eviction",
    "io.k8s.api.coordination.v1": "Lease",
    "io.k8s.api.scheduling.v1": "PriorityClass",
    "io.k8s.api.admissionregistration.v1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "io.k8s.api.storage.v1": "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment",
    "io.k8s.api.resource.v1": "ResourceSlice DeviceClass ResourceClaim ResourceClaimTemplate",
    "io.k8s.api.networking.v1": "Ingress IngressClass NetworkPolicy",
    "io.k8s.api.rbac.v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "io.k8s.api.authorization.v1": "SelfSubjectAccessReview SelfSubjectRulesReview",
    "io.k8s.api.authentication.v1": "SelfSubjectReview",
    META: "DeleteOptions Status",
}
IMPORTS = {
    "metav1": META,
    "v1": "io.k8s.api.core.v1",
    "corev1": "io.k8s.api.core.v1",
    "apiv1": "io.k8s.api.core.v1",
    "resource": "io.k8s.apimachinery.pkg.api.resource",
    "intstr": "io.k8s.apimachinery.pkg.util.intstr",
    "runtime": "io.k8s.apimachinery.pkg.runtime",
    "types": "types",
}
BASIC = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int32": "int",
    "int64": "int",
    "float64": "float",
    "[]byte": "bytes",
    "types.UID": "string",
    "types.NodeName": "string",
}
# Types with a form of their own, which the decoder and the schemas know by name.
SPECIAL = {
    f"{META}.Time",
    f"{META}.MicroTime",
    f"{META}.Duration",
    f"{META}.FieldsV1",
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
FIELD = re.compile(
    r'^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:"([^",]*)([^"]*)"(?:\s+\w+:"[^"]*")*?\s+protobuf:"\w+,(\d+),(\w+)'
)


def read(modules: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return struct bodies and aliases by full name."""
    structs, aliases = {}, {}
    for package, folder in PACKAGES.items():
        for file in sorted((modules / folder.format(v=VERSION)).glob("*.go")):
            if file.name.startswith("zz_") or file.name.endswith("_test.go") or "generated" in file.name:
                continue
            text = file.read_text()
            for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
                structs[f"{package}.{name}"] = body
            for name, other in re.findall(
                r"^type (\w+) (?!struct|interface|func)([\w.\[\]*]+)", text, re.MULTILINE
            ):
                aliases[f"{package}.{name}"] = other
    return structs, aliases


def main() -> None:
    structs, aliases = read(Path(sys.argv[1]))

    def resolved(go: str, package: str) -> str:
        if go in BASIC:
            return BASIC[go]
        if go.startswith("[]"):
            return "[]" + resolved(go[2:], package)
        if go.startswith("map["):
            return "{}" + resolved(go[go.index("]") + 1 :], package)
        if go.startswith("*"):
            return resolved(go[1:], package)
        short, _, name = go.rpartition(".")
        if short == "v1" and package == META:
            short = "metav1"
        full = f"{IMPORTS[short] if short else package}.{name}"
        if full in SPECIAL or full in structs:
            return full
        owner = full.rpartition(".")[0]
        return resolved(aliases[full], owner)

    table: dict[str, list[list[object]]] = {}
    todo = [f"{package}.{name}" for package, names in ROOTS.items() for name in names.split()]
    while todo:
        full = todo.pop()
        if full in table or full in SPECIAL:
            continue
        package = full.rpartition(".")[0]
        fields: list[list[object]] = []
        for line in structs[full].splitlines():
            match = FIELD.match(line)
            if match is None:
                continue
            _, go, name, options, number, _ = match.groups()
            kind = resolved(go, package)
            inline = not name and "inline" in options
            keeps_zero = go.startswith(("*", "map[")) or (
                not inline and "omitempty" not in options and name != "status"
            )
            fields.append([int(number), "" if inline else name, kind, int(keeps_zero)])
            base = re.sub(r"^(\[\]|\{\})+", "", kind)
            if base.startswith("io."):
                todo.append(base)
        table[full] = fields
    lines = [f"{json.dumps(name)}: {json.dumps(table[name])}" for name in sorted(table)]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()

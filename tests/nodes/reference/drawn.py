"""Random clusters and clouds, as a story has them before its first step."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from tests.nodes.reference import drawn_rules, objects, traits
from tests.nodes.reference.drawn_flags import FLAGS, SLOW_FLAGS
from tests.nodes.reference.drawn_relations import Relations
from tests.nodes.reference.node_marks import CANDIDATE, TO_BE_DELETED
from tests.nodes.reference.places import Place
from tests.nodes.reference.snapshot import refusals
from tests.nodes.reference.traits import Traits
from tests.nodes.reference.world import Json

from kubetide.units.time import Instant, before, format_rfc3339, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-01-01T00:00:00Z")
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
OWNERS = ("ReplicaSet", "Job", "StatefulSet", "ReplicationController")
VOLUMES: tuple[Json, ...] = (
    {"emptyDir": {}},
    {"emptyDir": {"medium": "Memory"}},
    {"hostPath": {"path": "/var"}},
)
TAINT = {"key": "team", "value": "red", "effect": "NoSchedule"}


@dataclass
class Drawn:
    """A drawn cluster as a story without steps, and what later nodes and pods of it are made of."""

    seed: int
    random: Random = field(init=False)
    story: Json = field(init=False)
    templates: list[Json] = field(default_factory=list)
    shapes: dict[str, Json] = field(default_factory=dict)
    slow: bool = False
    """Whether deletions last: evictions are refused, and nodes ask to wait."""
    traits: Traits = field(init=False)
    relations: Relations = field(init=False)
    alike: bool = False
    """Whether groups have labels of which some clouds say that they do not count."""
    made: int = 0

    def __post_init__(self) -> None:
        draw = self.random = Random(self.seed)
        chosen = draw.sample(sorted(FLAGS), draw.randint(3, 12))
        options = {name: draw.choice(FLAGS[name]) for name in chosen}
        self.slow = draw.random() < 0.25
        if self.slow:
            options |= {name: draw.choice(of) for name, of in SLOW_FLAGS.items() if draw.random() < 0.5}
            if "drain-priority-config" in options:
                # Upstream refuses the two together.
                options.pop("max-graceful-termination-sec", None)
            # No node gets its soft taint in the loop that starts its deletion: in the recording's API server the one
            # that is written last undoes the other.
            options["scale-down-unneeded-time"] = draw.choice(("1m", "2m"))
            options["max-bulk-soft-taint-count"] = draw.choice((10, 0))
            options.pop("node-deletion-candidate-ttl", None)
        if draw.random() < 0.1:
            options["parallel-scale-up"] = "true"
            options["balance-similar-node-groups"] = draw.choice(("true", "false"))
            options["enforce-node-group-min-size"] = draw.choice(("true", "true", "false"))
        self.traits = Traits.drawn(draw, options)
        self.relations = Relations.drawn(self.seed, options)
        options.setdefault("scale-down-unneeded-time", "1m")
        options.setdefault("scale-down-delay-after-add", draw.choice(("0s", "1m")))
        if options.get("enforce-node-group-min-size") == "true":
            # Increases to the minimum are held together against these, otherwise than upstream's.
            for name in ("max-nodes-total", "cores-total", "memory-total", "gpu-total"):
                options.pop(name, None)
        self.story = {
            "id": f"life-{self.seed}",
            "group": "lives",
            "options": options,
            "provider": {"hasInstanceImplemented": draw.random() < 0.8},
            "nodeGroups": [],
            "cluster": {"nodes": [], "objects": {}},
            "steps": [],
        }
        if draw.random() < 0.8:
            self.story["provider"] = {}
        self.alike = drawn_rules.draw_likeness(draw, self.story) or "parallel-scale-up" in options
        self._draw_workloads()
        for name in "abcd"[: draw.randint(1, 4)]:
            self._draw_group(name)
        drawn_rules.draw_expander(draw, self.story)
        if draw.random() < 0.2:
            self._add_node(None, "stray", ready=True)
        self._fill()

    # ── the cluster at the start ──

    def _draw_workloads(self) -> None:
        draw = self.random
        kept = self.story["cluster"]["objects"]
        for kind in (*OWNERS, "Pod", "DaemonSet", "PodDisruptionBudget"):
            kept[kind] = []
        kept["Namespace"] = self.relations.namespaces()
        for number in range(draw.randint(2, 4)):
            self._draw_workload(f"w{number}")
        if draw.random() < 0.35:
            kept["DaemonSet"].append(self._daemon_set())

    def _draw_workload(self, name: str) -> None:
        """Draw what a workload's pods look like, who owns them, if anybody, and a budget for a few."""
        draw, kept = self.random, self.story["cluster"]["objects"]
        kind = draw.choices((*OWNERS, "Widget", ""), (16, 2, 2, 2, 1, 2))[0]
        namespace = "kube-system" if draw.random() < 0.1 else "default"
        metadata: Json = {"labels": {"app": name}}
        if kind:
            metadata["ownerReferences"] = [objects.owner(kind, name)]
            if draw.random() < 0.95 and kind in OWNERS:
                wanted = {"replicas": draw.randint(1, 4), **self.traits.owner(kind)}
                kept[kind].append(objects.workload(kind, name, namespace=namespace, **wanted))
        self.relations.label(metadata)
        spec, notes = self._rules(name)
        self.relations.constrain(spec, name)
        if notes:
            metadata["annotations"] = notes
        self.templates.append(
            {
                "name": name,
                "namespace": namespace,
                "port": draw.choice((8080, 9090)) if draw.random() < 0.08 else None,
                "cpu": draw.choice((100, 300, 700, 1100, 1900)),
                "memory": draw.choice((64, 512, 2048)),
                "metadata": metadata,
                "spec": spec | self.traits.scheduler(),
                **self.traits.template(),
            }
        )
        self.relations.shrink(self.templates[-1])
        if draw.random() < 0.2:
            kept["PodDisruptionBudget"].append(self._budget(name, namespace))

    def _rules(self, name: str) -> tuple[Json, Json]:
        """Draw where the pods may go and what keeps them where they are: fields of the spec, and annotations."""
        draw = self.random
        spec: Json = {}
        notes: Json = {}
        if draw.random() < 0.2:
            notes[SAFE] = draw.choice(("true", "false", "false", "on-completion"))
        if draw.random() < 0.1:
            notes[DELAY] = draw.choice(("1m", "10s", "soon"))
        if draw.random() < 0.25:
            spec["nodeSelector"] = {"pool": draw.choice(("one", "two"))}
        if draw.random() < 0.3:
            spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
        if draw.random() < 0.15:
            spec["volumes"] = [{"name": "scratch", **deepcopy(draw.choice(VOLUMES))}]
            if draw.random() < 0.3:
                notes[SAFE_VOLUMES] = "scratch"
        if draw.random() < 0.12:
            term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": objects.HOSTNAME}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
        if draw.random() < 0.08:
            spec["affinity"] = spec.get("affinity", {}) | traits.affinity(draw)
        if draw.random() < 0.15:
            spec["priority"] = draw.choice((-20, -5, 100))
        if draw.random() < 0.1:
            spec["terminationGracePeriodSeconds"] = draw.choice((0, 700))
        return spec, notes

    def _budget(self, app: str, namespace: str) -> Json:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": namespace, "creationTimestamp": "2025-12-31T23:00:00Z"},
            "spec": {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1},
            "status": {
                "disruptionsAllowed": self.random.randint(0, 2),
                "currentHealthy": 3,
                "desiredHealthy": 1,
                "expectedPods": 3,
                "observedGeneration": 0,
            },
        }

    def _daemon_set(self) -> Json:
        made = objects.workload("DaemonSet", "agent", 1, "kube-system")
        spec: Json = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}
        spec["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}}
        if self.random.random() < 0.5:
            spec["tolerations"] = [{"operator": "Exists"}]
        made["spec"] = {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": spec},
        }
        return made

    def _draw_group(self, name: str) -> None:
        draw = self.random
        low = draw.choice((0, 0, 1, 2))
        group: Json = {"id": name, "min": low, "max": low + draw.randint(1, 6), "targetSize": 0}
        cpu = draw.choice((2, 2, 4, 8))
        shape = {"cpu": cpu, "memory_gib": cpu * draw.choice((2, 4)), "pods": draw.choice((110, 110, 4))}
        special = self.traits.shape()
        if self.alike and self.shapes and draw.random() < 0.8:
            same = {"cpu", "pods"} if draw.random() < 0.3 else shape.keys()
            shape |= {name: self.shapes["a"][name] for name in same}
        # Machines of one type are alike: production learns from one group's nodes what another's will be.
        machine = "-".join(map(str, (*shape.values(), *special.values())))
        labels = {"node.kubernetes.io/instance-type": machine, "topology.kubernetes.io/zone": f"z-{name}"}
        if draw.random() < (0.1 if self.alike else 0.4):
            labels["pool"] = draw.choice(("one", "two"))
        if self.alike:
            labels |= drawn_rules.draw_labels(draw)
        taints = [TAINT] if draw.random() < (0.05 if self.alike else 0.2) else []
        labels |= traits.labels(special)
        self.relations.place(labels)
        shape["accelerators"] = special.get("accelerators", 0)
        self.shapes[name] = {**shape, "labels": labels, "taints": taints}
        # Without a template upstream fails while a node of the group lacks its GPUs.
        if draw.random() < 0.95 or special:
            group["template"] = objects.node(f"{name}-template", at=START, **self.shapes[name])
        if draw.random() < 0.3:
            group["options"] = dict(
                draw.sample(
                    (
                        ("scaleDownUtilizationThreshold", 0.8),
                        ("scaleDownGpuUtilizationThreshold", 0.2),
                        ("scaleDownUnneededTime", "3m0s"),
                        ("scaleDownUnreadyTime", "2m0s"),
                        ("maxNodeProvisionTime", "2m0s"),
                        ("maxNodeStartupTime", "1m0s"),
                        ("ignoreDaemonSetsUtilization", True),
                        ("zeroOrMaxNodeScaling", True),
                        ("allowNonAtomicScaleUpToMax", True),
                    ),
                    draw.randint(1, 3),
                )
            )
            if self.traits.slow_to_start or self.relations.is_on:
                for option in ("maxNodeProvisionTime", "maxNodeStartupTime"):
                    group["options"].pop(option, None)
        self.story["nodeGroups"].append(group)
        for number in range(draw.randint(0, min(4, group["max"]))):
            self._add_node(name, f"{name}-n{number}", ready=draw.random() < 0.92)
            group["targetSize"] += 1
        if draw.random() < 0.1 and group["targetSize"] < group["max"]:
            group["targetSize"] += 1
            if draw.random() < 0.5:
                group["instances"] = [{"id": f"cloud://{name}/{name}-lost", "state": "running"}]

    def node(
        self, group: str | None, name: str, at: Instant, *, ready: bool = True, notes: Json | None = None
    ) -> Json:
        shape = self.shapes[group] if group else {"cpu": 4, "memory_gib": 16, "labels": {}}
        return objects.node(
            name,
            at=at,
            provider_id=f"cloud://{group or 'none'}/{name}",
            ready=ready,
            annotations=notes,
            **deepcopy(shape),
        )

    def _add_node(self, group: str | None, name: str, *, ready: bool) -> None:
        draw = self.random
        at = before(START, minutes(draw.choice((60, 60, 60, 5))))
        notes = {DISABLED: "true"} if draw.random() < 0.05 else None
        one: Json = {"node": self.node(group, name, at, ready=ready, notes=notes)}
        spec, fate = one["node"]["spec"], draw.random()
        if fate < 0.04 and not self.slow:
            since = draw.choice((at, before(START, minutes(1))))
            _taint(spec, TO_BE_DELETED, "NoSchedule", since)
            spec["unschedulable"] = draw.random() < 0.5
        elif fate < 0.08 and self.story["options"].get("max-bulk-soft-taint-count") != 0:
            # Without soft taints it goes at once; where the same loop deletes the node, the recording's API server loses that.
            _taint(spec, CANDIDATE, "PreferNoSchedule", before(START, minutes(draw.choice((1, 20)))))
        elif fate < 0.1:
            spec["unschedulable"] = True
        elif fate < 0.12:
            suspended = {"type": "Suspended", "status": draw.choice(("True", "False"))}
            one["node"]["status"]["conditions"].append(suspended)
        self.traits.mark_node(one["node"], 0.15)
        self.story["cluster"]["nodes"].append(one | ({"nodeGroup": group} if group else {}))

    def _fill(self) -> None:
        """Put pods on the nodes: the DaemonSet's on all that it tolerates, of the others as many as come."""
        draw, kept = self.random, self.story["cluster"]["objects"]
        places = [Place(one["node"]) for one in self.story["cluster"]["nodes"]]
        namespaces = {one["metadata"]["name"]: one["metadata"]["labels"] for one in kept["Namespace"]}
        for place in places:
            place.pods += self.daemon_pods(kept["DaemonSet"], place, before(START, minutes(50)))
            if draw.random() < 0.1:
                place.pods.append(self._mirror(place.name))
            for _ in range(draw.choice((0, 0, 1, 2, 3))):
                one = self.pod(draw.choice(self.templates), before(START, minutes(40)))
                if not refusals(one, place, places, namespaces):
                    place.pods.append(self._aged(objects.bound(one, place.name)))
            kept["Pod"] += place.pods

    def _mirror(self, node: str) -> Json:
        """A static pod of the node, as the API server shows it."""
        notes = {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"}
        meta = {"annotations": notes, "ownerReferences": [objects.owner("Node", node)]}
        shape = {"cpu": 100, "memory": 64, "metadata": meta, "spec": {}}
        return objects.pod(
            f"proxy-{node}", before(START, minutes(50)), shape, namespace="kube-system", on=node
        )

    def _aged(self, pod: Json) -> Json:
        """Let a few pods have ended, or be about to."""
        fate = self.random.random()
        if fate < 0.04:
            pod["status"]["phase"] = self.random.choice(("Succeeded", "Failed"))
        elif fate < 0.08:
            ago = self.random.choice((10, 600, 1200))
            pod["metadata"]["deletionTimestamp"] = format_rfc3339(before(START, seconds(ago)))
            pod["metadata"]["deletionGracePeriodSeconds"] = 30
        return pod

    def daemon_pods(self, daemon_sets: list[Json], place: Place, at: Instant) -> list[Json]:
        made = []
        for one in daemon_sets:
            template = one["spec"]["template"]
            name = f"agent-{place.name}"
            spec = {**template["spec"], "terminationGracePeriodSeconds": 30}
            spec.pop("containers")
            meta = {**template["metadata"], "ownerReferences": [objects.owner("DaemonSet", "agent")]}
            shape = {"cpu": 100, "memory": 64, "metadata": meta, "spec": spec}
            pod = objects.pod(name, at, shape, namespace="kube-system")
            if not refusals(pod, place, [place], {}):
                made.append(objects.bound(pod, place.name))
        return made

    def pod(self, template: Json, at: Instant) -> Json:
        self.made += 1
        name = f"{template['name']}-{self.made:03}"
        made = objects.pod(name, at, template, namespace=template["namespace"])
        self.traits.mark_pod(made)
        self.relations.mark_pod(made)
        return made


def _taint(spec: Json, key: str, effect: str, since: Instant) -> None:
    """Add a taint that an earlier process left."""
    taint = {"key": key, "value": str(since // seconds(1)), "effect": effect}
    spec["taints"] = [*spec.get("taints", ()), taint]

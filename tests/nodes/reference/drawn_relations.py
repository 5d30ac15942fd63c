"""Random rules between pods: spread, affinity and anti-affinity, in a share of the lives."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.nodes.reference.objects import HOSTNAME
from tests.nodes.reference.world import Json

ZONE = "topology.kubernetes.io/zone"
KEYS = (*(HOSTNAME,) * 8, *(ZONE,) * 8, "rack", "rack", "pool")
SHARE = 0.3
"""How many of the lives have such rules."""
VERSION = "version"
"""A label in which pods of one workload may differ."""


@dataclass
class Relations:
    """It draws from a source of its own, so that lives without such rules are what they would be without it."""

    random: Random
    is_on: bool = False

    @classmethod
    def drawn(cls, seed: int, options: Json) -> Relations:
        """Draw whether a life has such rules.

        If it has, nodes get the usual time to start: pods that only a new node takes wait for it, and production backs the
        group off once the time is over and they still wait. Upstream buys the same nodes again.
        """
        draw = Random(f"{seed}: relations")
        made = cls(draw, draw.random() < SHARE)
        if made.is_on:
            options.pop("max-node-provision-time", None)
        return made

    def namespaces(self) -> list[Json]:
        """Return the Namespaces that pods are in. One that nobody has made has no labels."""
        draw = self.random
        return [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {"team": draw.choice(("x", "y"))}},
            }
            for name in ("default", "kube-system")
            if draw.random() < (0.8 if self.is_on else 0)
        ]

    def place(self, labels: dict[str, str]) -> None:
        """Let groups share zones, let some have none, and let some have a label more."""
        draw = self.random
        if not self.is_on:
            return
        if draw.random() < 0.6:
            labels[ZONE] = draw.choice(("z-a", "z-b"))
        elif draw.random() < 0.1:
            del labels[ZONE]
        if draw.random() < 0.8:
            labels["rack"] = draw.choice(("r1", "r2", ""))

    def label(self, metadata: Json) -> None:
        """Give a workload's pods labels beside their name, or none at all."""
        draw = self.random
        if not self.is_on:
            return
        if draw.random() < 0.03:
            del metadata["labels"]
        elif draw.random() < 0.7:
            metadata["labels"]["tier"] = draw.choice(("front", "back"))

    def constrain(self, spec: Json, app: str) -> None:
        """Add rules between pods to the spec of a workload's pods."""
        draw = self.random
        if not self.is_on:
            return
        if draw.random() < 0.55:
            spec["topologySpreadConstraints"] = self._constraints(app)
        affinity = dict(spec.get("affinity", {}))
        for kind, own in (("podAffinity", 0.7), ("podAntiAffinity", 0.3)):
            if draw.random() < 0.2:
                terms = [self._term(app, own) for _ in range(draw.choice((1, 1, 1, 2)))]
                affinity[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        if affinity:
            spec["affinity"] = affinity

    def shrink(self, template: Json) -> None:
        """Let many pods of a workload fit a node, so that it is the rules that decide."""
        if self.is_on and self.random.random() < 0.5:
            template |= {"cpu": self.random.choice((50, 100, 300)), "memory": 64}

    def mark_pod(self, pod: Json) -> None:
        """Let pods of a workload differ in one label, so that a new version of it is on its way."""
        own = pod["metadata"].get("labels")
        if self.is_on and own is not None and self.random.random() < 0.4:
            pod["metadata"]["labels"] = {**own, VERSION: self.random.choice(("1", "2"))}

    def ends(self) -> bool:
        """Return whether a pod is deleted now, and stays until its containers have ended."""
        return self.is_on and self.random.random() < 0.06

    def _constraints(self, app: str) -> list[Json]:
        """Return constraints of different keys, or one key with two effects, as the API demands."""
        draw = self.random
        made: dict[tuple[str, str], Json] = {}
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            one = self._constraint(app)
            made[one["topologyKey"], one["whenUnsatisfiable"]] = one
        return list(made.values())

    def _constraint(self, app: str) -> Json:
        draw = self.random
        effect = draw.choice(("DoNotSchedule",) * 4 + ("ScheduleAnyway",))
        made: Json = {"topologyKey": draw.choice(KEYS), "maxSkew": draw.choice((1, 1, 1, 2, 3))}
        made["whenUnsatisfiable"] = effect
        fate = draw.random()
        if fate < 0.9:
            made["labelSelector"] = self._selector(app, 0.75)
        elif fate < 0.95:
            made["labelSelector"] = {}
        if effect == "DoNotSchedule" and draw.random() < 0.4:
            made["minDomains"] = draw.choice((1, 2, 3, 5))
        if draw.random() < 0.4:
            made["nodeAffinityPolicy"] = draw.choice(("Honor", "Ignore", "Ignore"))
        if draw.random() < 0.4:
            made["nodeTaintsPolicy"] = draw.choice(("Honor", "Honor", "Ignore"))
        if "labelSelector" in made and draw.random() < 0.25:
            made["matchLabelKeys"] = draw.choice(([VERSION], [VERSION, "absent"]))
        return made

    def _selector(self, app: str, own: float) -> Json:
        """Return a selector: with the probability `own` of the workload's own pods, else of others or by other labels."""
        draw = self.random
        if draw.random() < own:
            return {"matchLabels": {"app": app}}
        fate = draw.random()
        if fate < 0.5:
            return {"matchLabels": {"app": f"w{draw.randint(0, 3)}"}}
        if fate < 0.75:
            return {"matchLabels": {"tier": draw.choice(("front", "back"))}}
        part: Json = {"key": draw.choice(("app", "tier", VERSION))}
        part["operator"] = draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        if part["operator"] in ("In", "NotIn"):
            values = {"app": [app, "w0"], "tier": ["front"], VERSION: ["2"]}
            part["values"] = values[part["key"]]
        return {"matchExpressions": [part]}

    def _term(self, app: str, own: float) -> Json:
        draw = self.random
        made: Json = {"topologyKey": draw.choice(KEYS), "labelSelector": self._selector(app, own)}
        fate = draw.random()
        if fate < 0.04:
            made["labelSelector"] = {}
        elif fate < 0.08:
            del made["labelSelector"]
        if draw.random() < 0.15:
            made["namespaces"] = draw.choice((["default"], ["kube-system"], ["default", "kube-system"]))
        if draw.random() < 0.15:
            absent = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
            made["namespaceSelector"] = draw.choice(({}, {"matchLabels": {"team": "x"}}, absent))
        return made

"""Random rules of choice among groups: prices, priorities that people write, and what makes groups alike."""

from __future__ import annotations

from random import Random

from tests.nodes.reference.priorities import ENTRY, NAME, NAMESPACE, REFUSED
from tests.nodes.reference.world import Json

PRICED = ("price", "price,least-nodes", "most-pods,price", "priority,price", "price,priority,least-waste")
BY_PRIORITY = ("priority", "priority,least-waste", "priority,most-pods,random", "least-nodes,priority")
PATTERNS = ("a", "b", "^c$", "[ab]", "[^a]", "a|d", ".*", "", "x", "A", "(?i)B", "^[b-d]", "d?$")
PRIORITIES = ("-5", "-1", "0", "3", "10", '"10"', "50")
BROKEN = ("", "x: [y", "10: a", "ten: [a]", "- a", "10: [[a]]", "10: [a]\n5: b", "true: [a]")
HARMLESS = ("{}", "# nothing yet", "10:", "10: [1, a]", "10: [null]")
LABELS = (
    "agentpool",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
    "kubernetes.azure.com/agentpool",
    "lifecycle",
    "mine",
    "poolName",
    "topology.gke.io/zone",
    "topology.k8s.aws/zone-id",
)
CLOUDS = ("aws", "gce", "azure", "")
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
TOLERANCES = ("memory-difference-ratio", "max-allocatable-difference-ratio", "max-free-difference-ratio")


def draw_likeness(draw: Random, story: Json) -> bool:
    """Let a few stories balance groups by the rule of a cloud. Return whether this is one of them."""
    if draw.random() >= 0.15:
        return False
    options, cloud = story["options"], draw.choice(CLOUDS)
    options["balance-similar-node-groups"] = "true"
    if cloud:
        story["provider"]["comparator"] = cloud
    if draw.random() < 0.4:
        names = ("mine", "lifecycle", "pool", INSTANCE_TYPE)
        options["balancing-ignore-label"] = draw.sample(names, draw.randint(1, 3))
        if draw.random() < 0.7:
            # Machines of two types, one with twice the memory of the other.
            options["balancing-ignore-label"] = [INSTANCE_TYPE, "pool"]
            options |= {name: draw.choice(("0.5", "0.6", "0.6")) for name in TOLERANCES}
    if draw.random() < 0.2:
        options["balancing-label"] = ["pool"]
    return True


def draw_labels(draw: Random) -> dict[str, str]:
    """Return labels for a group, of those that count with one cloud and not with another."""
    return {name: draw.choice(("x", "y", "")) for name in draw.sample(LABELS, draw.choice((0, 0, 1, 1, 2)))}


def draw_expander(draw: Random, story: Json) -> None:
    """Let a few stories choose by price or priority; to be called when all groups are there."""
    fate = draw.random()
    # The player of stories takes the price of a group from its template.
    all_have_templates = all("template" in one for one in story["nodeGroups"])
    if fate < 0.12 and all_have_templates:
        story["options"]["expander"] = draw.choice(PRICED)
        labels = [one["template"]["metadata"]["labels"] for one in story["nodeGroups"]]
        prices = {
            kind: draw.choice((0.05, 0.1, 0.2, 0.4, 1.0, 0.0))
            for kind in sorted({one[INSTANCE_TYPE] for one in labels})
            if draw.random() < 0.9
        }
        story["provider"]["pricing"] = {
            "nodePricePerHourByInstanceType": prices,
            "podPricePerCpuHour": draw.choice((0.03, 0.03, 1.0)),
            "podPricePerGiBHour": draw.choice((0.004, 0.004, 0.1)),
        }
        for one in story["nodeGroups"]:
            if one["targetSize"] == one["min"] == 0 and draw.random() < 0.4:
                one["exists"] = False
    elif fate < 0.24:
        story["options"]["expander"] = draw.choice(BY_PRIORITY)
    if reads_priorities(story):
        config_maps = story["cluster"]["objects"].setdefault("ConfigMap", [])
        config_maps += [draw_priorities(draw)] if draw.random() < 0.7 else []


def reads_priorities(story: Json) -> bool:
    return "priority" in str(story["options"].get("expander", "")).split(",")


def draw_priorities(draw: Random) -> Json:
    """Return the ConfigMap with the priorities of groups; now and then one that is of no use."""
    fate = draw.random()
    text: str | None = None
    if fate < 0.7:
        text = "\n".join(
            f"{priority}:"
            + "".join(f"\n- {_quoted(one)}" for one in draw.sample(PATTERNS, draw.randint(1, 3)))
            for priority in draw.sample(PRIORITIES, draw.randint(1, 3))
        )
    elif fate < 0.75:
        text = f"10:\n- b\n- {_quoted(draw.choice(sorted(REFUSED)))}\n"
    elif fate < 0.85:
        text = draw.choice(HARMLESS)
    elif fate < 0.95:
        text = draw.choice(BROKEN)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": f"configmap-{NAME}"},
        "data": {"other": "10: [a]"} if text is None else {ENTRY: text},
    }


def _quoted(pattern: str) -> str:
    return f"'{pattern}'"

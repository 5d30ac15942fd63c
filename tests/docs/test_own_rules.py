"""The rules that docs/extending.md takes from packages of one's own: named in a run, recorded, and decided again."""

from __future__ import annotations

import re
import sys

import pytest
from msgspec.structs import replace
from tests.docs.tables import DOCS
from tests.nodes.frozen import World, group, node, pod, template
from tests.simulate.worlds import MANIFEST, small

from kubetide.horizontal.options.annotations import read_options
from kubetide.horizontal.options.named import named_options
from kubetide.nodes.expander import ExpanderError, parse_expanders
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.reasons import VOCABULARY as NODE_REASONS
from kubetide.nodes.scale_down.drain_rules import RULES, WAIT
from kubetide.nodes.scale_down.drain_rules.named import named_rules, rules_with
from kubetide.nodes.scale_up.pending.demand import check_sources, named_source
from kubetide.ports.plugins import PluginNotUsable
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.units.time import minutes

PAGE = (DOCS / "extending.md").read_text(encoding="utf-8")
OWN = """
from kubetide.nodes.scale_up.pending.demand import Asked
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements


def dearest(options, context):
    most = max(option.group.price_per_hour or 0 for option in options)
    return [option for option in options if (option.group.price_per_hour or 0) == most]


def nothing(options, context):
    return []


def headroom(state, now):
    requests = ResourceRequirements(requests={"cpu": "1"})
    spec = PodSpec(containers=(Container(name="main", resources=requests),))
    made = Pod(metadata=ObjectMeta(name="spare", namespace="kube-system"), spec=spec, status=PodStatus(phase="Pending"))
    return [Asked(made, "headroom", virtual=True)]


def from_nine(state, now):
    return headroom(state, now) if now % 86_400_000_000_000 >= 9 * 3_600_000_000_000 else []


number = 7
"""
INSTALLED = (
    "[kubetide.hpa-options]\nmultiples = evens:Evens\n[kubetide.drain-rules]\nsiesta = siesta:siesta\n"
)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Put the modules of the page, and one more, where Python finds them; two are also offered by a package."""
    site = tmp_path / "site"
    info = site / "rules.dist-info"
    info.mkdir(parents=True)
    for name in ("siesta", "evens"):
        [code] = re.findall(rf"```python\n# package of its own: {name}.py\n(.*?)```", PAGE, flags=re.DOTALL)
        (site / f"{name}.py").write_text(code, encoding="utf-8")
    (site / "own.py").write_text(OWN, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rules\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(INSTALLED, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    yield info
    for name in ("siesta", "evens", "own"):
        sys.modules.pop(name, None)
    for cached in (named_options, named_rules, rules_with, named_source):
        cached.cache_clear()


def test_an_option_decides_and_replay_decides_it_again(packages, tmp_path):
    """With ``multiples: "3"`` the four proposed pods become six; records name the option and the plug-ins' versions."""
    manifest = MANIFEST.replace(
        "HorizontalPodAutoscaler\nmetadata: {name: web}",
        'HorizontalPodAutoscaler\nmetadata: {name: web, annotations: {horizontal.kubetide.io/multiples: "3"}}',
    )
    assert manifest != MANIFEST
    flags = {"horizontal-pod-autoscaler-options": "multiples", "drain-rules": "siesta"}
    scenario = replace(small(duration="10m"), manifests=(manifest,), flags=flags)
    out = tmp_path / "out"
    run_simulation(scenario, base=tmp_path, out=out, seed=1, warn=lambda _: None)
    headers = []
    records = list(read_records(out, "horizontal", on_segment=headers.append))
    found = [reason for one in records for reason in one.reasons if reason.code == "AdjustedByOption"]
    assert found[0].fields == {"option": "multiples", "desired": 6, "proposed": 4}
    assert {one.name: one.version for one in headers[0].plugins} == {"multiples": "1.0", "siesta": "1.0"}
    assert replay(out).differences == ()

    (packages / "entry_points.txt").unlink()
    with pytest.raises(
        RecordError, match=r"was recorded with the plug-ins .*there is no '(multiples|siesta)'"
    ):
        replay(out)


def test_an_option_stays_within_bounds_and_says_what_it_cannot_read(packages):
    """A value that the option refuses is a problem of that annotation alone."""
    others = ("multiples",)
    prefix = "horizontal.kubetide.io/"
    read = read_options({prefix + "multiples": "0", prefix + "pause": "in"}, others)
    assert (read.named, read.pause) == ((), "in")
    assert read.problems == ('horizontal.kubetide.io/multiples: "0" is not read; write a number such as 2',)
    [named] = read_options({prefix + "multiples": "4"}, others).named
    assert named == ("multiples", 4)
    with pytest.raises(PluginNotUsable, match=r"own:number.*must have `read\(text\)` and `adjust"):
        named_options(("own:number",))


def test_a_drain_rule_is_asked_before_budgets(packages):
    """The pods of an import are waited for; all others are left to the rules behind it."""
    rules = rules_with(("siesta",))
    assert [rule.name for rule in rules] == [*(r.name for r in RULES[:-1]), "siesta", RULES[-1].name]
    rule = rules[-2]
    assert rule.check(pod("p", metadata={"labels": {"app": "import"}}), None) == WAIT
    assert rule.check(pod("p"), None) is None
    with pytest.raises(PluginNotUsable, match=r"own:number.*is no drain rule"):
        rules_with(("own:number",))


def test_a_source_and_an_expander_buy_a_node(packages):
    """A pod that does not exist gets a node, of the group that the expander of the package leaves."""
    groups = [
        group("dear", made=template(cpu="2"), price_per_hour=0.4),
        group("cheap", made=template(cpu="2"), price_per_hour=0.3),
    ]
    on = {"demand_sources": ("pending", "own:headroom"), "expander": "own:dearest,random"}
    assert World(groups=groups, settings=on).increases() == {"dear": 1}
    with pytest.raises(ValueError, match=r"--demand-sources: there is no source 'wish'; there are pending, "):
        check_sources(("wish",))
    with pytest.raises(ExpanderError, match="Expander wish not supported; there are least-waste"):
        parse_expanders("wish")
    with pytest.raises(ExpanderError, match=r"No module named 'wish'; install it, or .* PYTHONPATH"):
        parse_expanders("wish:dearest")


def test_a_source_is_asked_by_the_clock_alone(packages):
    """The source asks for a pod from 09:00 on: in a cluster in which nothing else happens it gets its node then."""
    on = {"demand_sources": ("pending", "own:from_nine")}
    world = World(
        groups=[group("g", nodes=["n"])], nodes=[node("n")], pods=[pod("p", cpu="4", node="n")], settings=on
    )
    assert [world.increases(at=minutes(at)) for at in (0, 1, 59, 60)] == [{}, {}, {}, {"g": 1}]


def test_an_expander_that_leaves_no_group_is_named(packages):
    """Who waits for a node reads which expander left none; no price is said to be missing where prices are there."""
    settings = {"expander": "own:nothing,random"}
    world = World(groups=[group("a", price_per_hour=0.1)], pods=[pod("p")], settings=settings)
    assert world.increases() == {}
    [said] = [NODE_REASONS.text(one) for one in world.reasons if one.code in {"NoneRated", "NoneLeft"}]
    assert said == "no group is chosen: the expander own:nothing leaves none of 1 option"
    assert explain_pod(world.state, ("default", "p"), world.now).sentence == (
        "No group takes it, and no change is known that would help: "
        "expansion options filtered out and no longer considered by --expander=own:nothing,random."
    )

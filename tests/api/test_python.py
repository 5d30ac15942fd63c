"""`import kubetide as kt`: what docs/python.md shows, and what it says to wrong input."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import kubetide as kt
from kubetide.ports.errors import KubetideError

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SHOP = re.search(r'"""\n(.*?)"""', BLOCKS[0], re.DOTALL).group(1)


@pytest.mark.slow
def test_the_page_runs_unchanged(tmp_path):
    """Every block of the page runs, with its assertions, and prints what the notebook beside the page shows."""
    made = tmp_path / "made.ipynb"
    done = subprocess.run(
        [sys.executable, "-m", "tools.notebook", made], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    notebook = PAGE.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert made.read_text(encoding="utf-8") == notebook, "run `python -m tools.notebook`"
    assert "90% of 60%: ratio 1.5 x 3 pods = 4.5, so 5 replicas" in notebook
    cells = json.loads(notebook)["cells"]
    assert ["".join(one["source"]) + "\n" for one in cells if one["cell_type"] == "code"] == BLOCKS


def test_importing_loads_nothing_else():
    """The name of the package alone loads no loop and no simulator."""
    code = "import sys, kubetide; print([name for name in sys.modules if name.startswith('kubetide.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert not set(kt.__all__) & {path.stem for path in Path(kt.__file__).parent.iterdir()} - {"__init__"}


def objects(**hpa):
    found = list(yaml.safe_load_all(SHOP))
    found[1]["spec"] |= hpa
    return found


def test_usage_in_its_three_forms():
    """The same for each, one a pod, by name; a pod without a sample is one of those that are missing."""
    same = kt.decide_hpa(SHOP, {"cpu": "180m"})
    assert kt.decide_hpa(objects(), [{"cpu": "180m"}] * 3).desired == same.desired == 5
    assert kt.decide_hpa(SHOP, {f"web-{n}": {"cpu": 0.18} for n in range(3)}).desired == 5
    some = kt.decide_hpa(SHOP, {"web-0": {"cpu": "180m"}})
    assert "2 without a sample" in "\n".join(some.lines())
    assert kt.decide_hpa(SHOP, {"cpu": "180m"}, replicas=9).desired == 10


def test_other_metrics_and_flags():
    """External values are given by the metric's name; flags are those of kube-controller-manager."""
    external = {
        "type": "External",
        "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
    }
    assert kt.decide_hpa(objects(metrics=[external]), values={"queue": 55}).desired == 6
    tolerant = {"horizontal-pod-autoscaler-tolerance": 0.6}
    assert kt.decide_hpa(SHOP, {"cpu": "180m"}, flags=tolerant).desired == 3


def test_an_hpa_of_another_name_than_its_workload():
    """The name of the HPA is its own, and its workload is read all the same."""
    there = objects()
    there[1]["metadata"]["name"] = "web-by-cpu"
    found = kt.decide_hpa(there, {"cpu": "180m"})
    assert (found.current, found.desired) == (3, 5)


def test_values_of_pods_are_given_by_the_name_of_the_metric():
    """Each pod has the value of a Pods metric."""
    metric = {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    of_pods = objects(metrics=[{"type": "Pods", "pods": metric}])
    assert kt.decide_hpa(of_pods, values={"rps": 15}).desired == 5


def test_usage_is_that_of_the_container_that_is_asked_for():
    """A ContainerResource metric may ask for any container of the pod."""
    target = {"type": "Utilization", "averageUtilization": 60}
    metric = {"name": "cpu", "container": "main", "target": target}
    there = objects(metrics=[{"type": "ContainerResource", "containerResource": metric}])
    there[0]["spec"]["template"]["spec"]["containers"].insert(0, {"name": "proxy", "image": "proxy"})
    assert kt.decide_hpa(there, {"cpu": "180m"}).desired == 5


def test_without_values_the_number_stays():
    """Where metrics fail nothing is decided, and what is desired is what there is."""
    found = kt.decide_hpa(SHOP)
    assert (found.current, found.desired, found.proposal) == (3, 3, None)


def test_pods_of_other_workloads_are_none_of_the_hpa():
    """Of a dump of several workloads only the pods of the HPA's own get usage."""
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": app}},
            "spec": objects()[0]["spec"]["template"]["spec"],
            "status": {
                "phase": "Running",
                "startTime": "2025-01-01T00:00:00Z",
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
                ],
            },
        }
        for name, app in (("web-0", "web"), ("web-1", "web"), ("cart-0", "cart"))
    ]
    assert kt.decide_hpa([*objects(), *pods], [{"cpu": "180m"}] * 2, replicas=2).desired == 3


@pytest.mark.parametrize(
    ("ask", "reported"),
    [
        (lambda: kt.decide_hpa(SHOP, {"cpu": "much"}), "cpu: 'much' is not a quantity"),
        (
            lambda: kt.decide_hpa(SHOP, {"cpu": "1e30"}),
            "cpu: '1e30' is more than 64 bits of thousandths hold",
        ),
        (lambda: kt.decide_hpa(SHOP, [{"cpu": 1}]), "usage has 1 entries and there are 3 pods"),
        (lambda: kt.decide_hpa(SHOP, {"web-9": {"cpu": 1}}), "no such pod; there are web-0, web-1, web-2"),
        (lambda: kt.decide_hpa(SHOP, name="cart"), "cart is not among them; the objects have: default/web"),
        (lambda: kt.decide_hpa(SHOP, values={"queue": 1}), "the HPA has no such metric"),
        (lambda: kt.decide_hpa(objects()[1:]), "its target, Deployment web, is not among the objects"),
        (lambda: kt.decide_hpa("kind: Cow"), "objects:1"),
        (lambda: kt.decide_hpa(Path("none.yaml")), "cannot be read"),
        (lambda: kt.decide_hpa(SHOP, flags={"tolerance": 1}), "unknown flag"),
        (lambda: kt.fits(SHOP, "m5.tiny"), "no instance type of the catalogue; there are"),
        (lambda: kt.fits(SHOP, SHOP), "there is no Node among the objects"),
        (lambda: kt.fits(objects()[1:], "m5.large"), "neither a Pod nor a workload"),
        (lambda: kt.run_scenario("web-shp"), "did you mean `web-shop`?"),
        (lambda: kt.read_run("nowhere"), "cannot be read"),
    ],
)
def test_wrong_input_names_what_is_wrong(ask, reported):
    """Each error is one of ours, and says what to give."""
    with pytest.raises(KubetideError) as failed:
        ask()
    assert reported in str(failed.value)


def test_labels_of_a_machine():
    """A selector is met by the labels that are given."""
    chosen = objects()
    chosen[0]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "gold"}
    assert kt.fits(chosen, "m5.large").plugin == "NodeAffinity"
    assert kt.fits(chosen, "m5.large", labels={"pool": "gold"})

"""The report of savings: from pods and usage to amounts, money and risk."""

from __future__ import annotations

import csv
import io

import msgspec
import numpy as np
import pytest
from tests.vertical.recommender.running import START

from kubetide.advise import PriceError, Prices, UsageLog, Workloads, read_prices, report
from kubetide.advise.text import csv_text, html_text, table_text
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.testing import builders
from kubetide.units.time import Instant, hours, minutes
from kubetide.vertical.recommender.facts.views import History, Usage
from kubetide.vertical.recommender.settings import Settings

MIB = 1 << 20
GIB = 1 << 30
PRICES = Prices(cpu=1.0, memory=1.0, currency="EUR")
MONTH = 730


def meta(name, owner=None):
    body = {"name": name, "namespace": "shop"}
    if owner:
        kind, of = owner
        body["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": of, "controller": True}
        ]
    return msgspec.convert(body, ObjectMeta)


CONTROLLERS = [
    ("Deployment", meta("web")),
    ("ReplicaSet", meta("web-1", ("Deployment", "web"))),
    ("ReplicaSet", meta("web-2", ("Deployment", "web"))),
    ("StatefulSet", meta("db")),
]


def pod(name, owner=("ReplicaSet", "web-2"), cpu="1", memory="4Gi", **status):
    body = builders.pod(name, namespace="shop", cpu=cpu, memory=memory)
    body["metadata"] = {**body["metadata"], "namespace": "shop"}
    if owner:
        kind, of = owner
        body["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": kind, "name": of, "uid": of, "controller": True}
        ]
    body["spec"]["containers"][0]["name"] = "app"
    body["status"] = {"phase": "Running", **status}
    return msgspec.convert(body, Pod, strict=False)


def usage(pod_name, cpu, memory, *, count=8 * 24, container="app"):
    """History of a pod, a sample an hour, up to the start."""
    times = START - hours(1) * np.arange(count, 0, -1)
    return History(
        "shop",
        pod_name,
        {},
        {
            container: Usage(
                np.stack([times, np.resize(np.array(cpu), count)]).astype(np.int64),
                np.stack([times, np.resize(np.array(memory), count)]).astype(np.int64),
            )
        },
    )


def made(history, pods, hpas=(), namespace=""):
    log = UsageLog()
    log.add_history(history)
    return report(
        Workloads(CONTROLLERS, pods, namespace),
        log,
        hpas,
        settings=Settings(),
        prices=PRICES,
        now=START,
        source="a test",
    )


def test_a_container_that_requests_too_much_could_request_less():
    """Amounts, the recommender's target, money of all pods, and no risk after eight days."""
    found = made(
        [usage("web-2-a", [100, 200], 1000 * MIB), usage("web-2-b", [100, 200], 1000 * MIB)],
        [pod("web-2-a"), pod("web-2-b")],
    )
    [row] = found.rows
    assert (row.kind, row.workload, row.container, row.pods) == ("Deployment", "web", "app", 2)
    assert (row.cpu.request, row.cpu.p50, row.cpu.p95, row.cpu.max) == (1000, 200, 200, 200)
    assert (row.memory.request, row.memory.max) == (4 * GIB, 1000 * MIB)
    # The end of the bucket of 200 millicores is 215; and 15 %.
    assert row.cpu.recommended == 215 + 32
    assert 1.15 * 1000 * MIB < row.memory.recommended < 1.25 * 1000 * MIB
    then = 2 * MONTH * (0.247 + row.memory.recommended / GIB)
    assert (row.cost, row.cost_then) == (2 * MONTH * 5, pytest.approx(then))
    assert (found.saving, row.risk, row.because) == (pytest.approx(2 * MONTH * 5 - then), "low", ())


def test_deleted_pods_count_by_their_names():
    """Usage of an earlier ReplicaSet's pods belongs to the Deployment; they are not paid for twice."""
    old, new = usage("web-1-x", 900, 100 * MIB), usage("web-2-a", 100, 100 * MIB, count=12)
    old.containers["app"] = Usage(old.containers["app"].cpu[:, :180], old.containers["app"].memory[:, :180])
    [row] = made([old, new], [pod("web-2-a")]).rows
    assert (row.samples, row.cpu.max, row.pods) == (192, 900, 1)


def test_what_has_no_pods_is_left_out():
    """A workload that was deleted or scaled to 0 costs nothing."""
    assert made([usage("web-2-a", 100, MIB)], []).rows == ()
    assert made([usage("other-1", 100, MIB)], [pod("web-2-a")]).rows == ()


def test_a_pod_of_its_own_is_a_workload():
    """A pod without a controller and one of a StatefulSet are workloads; other namespaces are left out."""
    pods = [pod("alone", owner=None), pod("db-0", owner=("StatefulSet", "db"))]
    history = [usage("alone", 100, MIB), usage("db-0", 100, MIB)]
    assert [(row.kind, row.workload) for row in made(history, pods).rows] == [
        ("Pod", "alone"),
        ("StatefulSet", "db"),
    ]
    assert made(history, pods, namespace="other").rows == ()


def test_what_an_hpa_scales_on_is_left_as_it_is():
    """CPU retains its request, so it saves nothing; memory gets its recommendation."""
    body = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
        },
    }
    hpa = msgspec.convert(body, HorizontalPodAutoscaler, strict=False)
    [row] = made([usage("web-2-a", 100, 1000 * MIB)], [pod("web-2-a")], [hpa]).rows
    assert row.cpu.recommended is None
    assert row.memory.recommended < 2 * GIB
    assert row.saving == pytest.approx(MONTH * (4 - row.memory.recommended / GIB))
    assert row.because == ("cpu is left to HorizontalPodAutoscaler web, which scales on its utilization",)


def test_a_container_without_requests_costs_nothing_now():
    """Following the recommendation then costs more, and the row says so."""
    bare = pod("web-2-a")
    bare.spec.containers[0].resources.requests.clear()
    found = made([usage("web-2-a", 100, 1000 * MIB)], [bare])
    [row] = found.rows
    assert (row.cpu.request, row.cost) == (None, 0)
    assert row.saving < 0
    assert "more" in table_text(found)


@pytest.mark.parametrize(
    ("history", "status", "risk", "text"),
    [
        (usage("web-2-a", 100, 1000 * MIB, count=1), {}, "high", "only 0s of history"),
        (usage("web-2-a", 100, 1000 * MIB, count=5), {}, "medium", "only 4h0m0s of history, less than a day"),
        (usage("web-2-a", 100, 1000 * MIB, count=72), {}, "medium", "3d of history, less than a week"),
        (
            usage("web-2-a", [100] * 40 + [900], 1000 * MIB),
            {},
            "medium",
            "CPU has been at 900m, more than twice",
        ),
        (
            usage("web-2-a", 100, [3000 * MIB] * 24 + [100 * MIB] * 168),
            {},
            "high",
            "memory has been at 3000Mi, above the recommendation",
        ),
        (
            usage("web-2-a", 100, 1000 * MIB),
            {
                "containerStatuses": [
                    {
                        "name": "app",
                        "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
                        "ready": True,
                        "restartCount": 1,
                    }
                ]
            },
            "high",
            "a pod was killed for its memory",
        ),
    ],
)
def test_the_risk_says_what_it_is_made_of(history, status, risk, text):
    """Little history, bursts, greater use than is recommended, kills for memory."""
    [row] = made([history], [pod("web-2-a", **status)]).rows
    assert row.risk == risk
    assert any(text in one for one in row.because), row.because


def samples(at, *rows):
    count = len(rows)
    every = np.ones(count, np.bool_)
    return PodSamples(
        namespaces=("shop",) * count,
        names=tuple(name for name, _, _ in rows),
        timestamp_ns=np.full(count, at, np.int64),
        window_ns=np.zeros(count, np.int64),
        first=np.arange(count + 1),
        containers=("app",) * count,
        usage={
            "cpu": ResourceUsage(np.array([cpu for _, cpu, _ in rows]), every),
            "memory": ResourceUsage(np.array([memory * 1000 for _, _, memory in rows]), every),
        },
    )


def test_samples_of_the_metrics_api_count_once():
    """An answer that says the same as the one before adds nothing; pods are averaged over the answers."""
    log = UsageLog()
    for round_, at in enumerate((START, START, Instant(START + minutes(1)))):
        rows = [("web-2-a", 100 + round_, 50 * MIB), ("web-2-b", 200, 50 * MIB)][: 1 + (round_ == 2)]
        log.add(samples(at, *rows))
    used = log.by_container(Workloads(CONTROLLERS, [pod("web-2-a"), pod("web-2-b")]).of)
    [containers] = used.values()
    assert sorted(containers["app"].cpu.tolist()) == [100, 102, 200]
    assert containers["app"].pods == 1.5
    assert containers["app"].span == minutes(1)


def test_the_three_forms_say_the_same():
    """A line a container in CSV, a row in the table and on the page; names are never markup or formulas."""
    found = made([usage("web-2-a", 100, 1000 * MIB, container="app")], [pod("web-2-a")])
    [row] = found.rows
    odd = msgspec.structs.replace(
        found, rows=(msgspec.structs.replace(row, workload="=cmd()", container="<script>"),)
    )
    [line] = csv.DictReader(io.StringIO(csv_text(odd)))
    assert (line["workload"], line["cpu_recommended_m"], line["currency"]) == ("'=cmd()", "126", "EUR")
    assert float(line["saving_month"]) == pytest.approx(row.saving, abs=1e-3)
    assert "<script>" not in html_text(odd)
    assert "&lt;script&gt;" in html_text(odd)
    assert f"{row.saving:,.2f}" in html_text(found)
    assert "1 → 126m" in table_text(found)
    assert table_text(found, most=1).count("shop/web") == 1


def test_prices_are_read_from_a_file(tmp_path):
    """What is not stated is the default; what is not understood is an error that says what to write."""
    path = tmp_path / "prices.yaml"
    path.write_text("cpu: 0.05\ncurrency: EUR\n")
    assert read_prices(path) == Prices(cpu=0.05, currency="EUR")
    assert read_prices(path).month(2000, 0) == pytest.approx(2 * 0.05 * 730)
    for text in ("cpu: much", "cores: 1", "[1]", "cpu: -1"):
        path.write_text(text)
        with pytest.raises(PriceError, match=r"prices\.yaml"):
            read_prices(path)
    with pytest.raises(
        PriceError, match=r"none\.yaml: cannot be read: No such file or directory; check the path$"
    ):
        read_prices(tmp_path / "none.yaml")

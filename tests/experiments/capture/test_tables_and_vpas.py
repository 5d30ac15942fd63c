"""Time tables and VPAs come back from records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.experiments.capture.test_command import invoke, played
from tests.experiments.capture.test_prometheus import card_of, scenario_of

from kubetide.experiments.capture.tables import table_manifest
from kubetide.objects.kinds import CRON_HPAS, HPCS, SCALED_OBJECTS, TKESTACK_CRON_HPAS
from kubetide.schedules.kinds.registry import MODES
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.simulate.scenarios.shipped import scenario_path

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
TABLES = {
    HPCS: {
        "scaleTarget": DEPLOYMENT | {"namespace": "shop"},
        "crons": [
            {"name": "up", "schedule": "0 30 8 * * *", "targetSize": 9, "excludeDates": ["* * 1 1 *"]},
            {"name": "bounds", "schedule": "0 0 18 * * *", "minSize": 1, "maxSize": 3},
        ],
    },
    CRON_HPAS: {
        "scaleTargetRef": DEPLOYMENT,
        "excludeDates": ["* * * 25 12 *"],
        "jobs": [
            {"name": "up", "schedule": "0 0 8 * * *", "targetSize": 5, "runOnce": True},
            {"name": "down", "schedule": "0 0 20 * * *", "targetSize": 1, "runOnce": False},
        ],
    },
    TKESTACK_CRON_HPAS: {
        "scaleTargetRef": DEPLOYMENT,
        "crons": [{"schedule": "0 8 * * *", "targetReplicas": 7}],
    },
    SCALED_OBJECTS: {
        "scaleTargetRef": DEPLOYMENT,
        "minReplicaCount": 1,
        "maxReplicaCount": 20,
        "idleReplicaCount": 0,
        "cooldownPeriod": 90,
        "triggers": [
            {
                "type": "cron",
                "metadata": {
                    "timezone": "Asia/Shanghai",
                    "start": "0 8 * * *",
                    "end": "0 20 * * *",
                    "desiredReplicas": "10",
                },
            }
        ],
    },
}


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.kind)
def test_a_time_table_as_a_manifest(kind):
    """Every kind that is read can be written, and says the same then."""
    meta = {"name": "office", "namespace": "shop"}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": TABLES[kind]}
    read = MODES[kind.kind].read
    table = read(msgspec.convert(body, kind.model))
    assert read(msgspec.convert(table_manifest(table), kind.model)) == table


def run_of(name, folder, duration):
    scenario = load_scenario(scenario_path(Path(name)))
    return played(msgspec.structs.replace(scenario, duration=duration), folder)


def test_a_morning(tmp_path):
    """A run that a time table scales comes back, and the card shows its replicas."""
    run = run_of("morning-ramp", tmp_path / "run", "45m")
    result = invoke(run, "--out", tmp_path / "out", "--seed", 7)
    assert result.exit_code == 0, result.output
    value, manifests = scenario_of(tmp_path / "out")
    assert sorted(value["loops"]) == ["horizontal", "nodes", "schedules"]
    assert [one["name"] for one in manifests["HorizontalPodCronscaler/office-hours"]["crons"]] == [
        "morning",
        "evening",
    ]
    assert card_of(result.output)["replicas of default/worker by time table"] == 100
    assert card_of(result.output)["nodes"] >= 95
    assert "not by an HPA" not in result.output


@pytest.fixture(scope="module")
def vertical(tmp_path_factory):
    return run_of("vertical", tmp_path_factory.mktemp("run"), "100m")


def test_vpas(vertical, tmp_path):
    """VPAs, the load and the memory of their targets come back, and what is recommended comes near."""
    result = invoke(vertical, "--out", tmp_path, "--seed", 7)
    assert result.exit_code == 0, result.output
    value, manifests = scenario_of(tmp_path)
    assert value["loops"] == ["horizontal", "nodes", "recommender", "updater", "admission"]
    assert value["flags"]["memory-aggregation-interval"] == "1h0m0s"
    assert manifests["VerticalPodAutoscaler/mailer"]["updatePolicy"] == {"updateMode": "InPlaceOrRecreate"}
    mailer = next(one for one in value["services"] if one["deployment"] == "mailer")
    assert (mailer["baseMemory"], mailer["load"]["step"]) == ("200Mi", "1m0s")
    card = card_of(result.output)
    for name in (
        "cpu of default/mailer mail",
        "memory of default/storefront web",
        "replicas of default/storefront",
    ):
        assert card[name] >= 95
    assert card["nodes"] >= 90


def test_vpas_that_only_recommend(vertical, tmp_path):
    """Without the updater's records the targets are reported by the pods that the recommender saw."""
    (tmp_path / "records").mkdir()
    for path in (vertical / "records").glob("*.jsonl"):
        if not path.name.startswith("updater"):
            (tmp_path / "records" / path.name).write_bytes(path.read_bytes())
    result = invoke(tmp_path, "--out", tmp_path / "out", "--no-score")
    assert result.exit_code == 0, result.output
    value, manifests = scenario_of(tmp_path / "out")
    assert value["loops"] == ["horizontal", "nodes", "recommender"]
    assert manifests["VerticalPodAutoscaler/mailer"]["targetRef"]["name"] == "mailer"

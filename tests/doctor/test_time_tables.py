"""What the doctor says of time tables: lost targets, rules that cannot be read, and what undoes them."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.findings import found, hpa
from tests.nodes.frozen import START, deployment

from kubetide.doctor.gather import gather
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import (
    CRON_HPAS,
    HPAS,
    HPCS,
    SCALED_OBJECTS,
    STORED_KINDS,
    TKESTACK_CRON_HPAS,
)
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

WINDOW = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "2"},
}


def table(name, target="web", *jobs, kind="Deployment", api_version="apps/v1"):
    body = {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": format_rfc3339(START)},
        "spec": {
            "scaleTargetRef": {"apiVersion": api_version, "kind": kind, "name": target},
            "jobs": [
                {"name": f"job-{place}", "schedule": text, "targetSize": 3} for place, text in enumerate(jobs)
            ],
        },
    }
    return msgspec.convert(body, CRON_HPAS.model)


def scaled_object(name, target, *triggers):
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"scaleTargetRef": {"name": target}, "triggers": list(triggers)},
    }
    return msgspec.convert(body, SCALED_OBJECTS.model)


GOOD = "0 0 8 * * *"
WEB = deployment("web", 1)


def seen(**objects):
    return [(one.severity, one.object, one.seen) for one in found("time-tables", **objects)]


def test_a_table_that_can_be_followed_is_left_alone():
    """Its target is there, and nothing else changes it; an HPA as the target is none that takes back."""
    of_an_hpa = table("bounds", "web", GOOD, kind="HorizontalPodAutoscaler", api_version="autoscaling/v2")
    assert seen(deployments=(WEB,), cron_hpas=(table("t", "web", GOOD),)) == []
    assert seen(deployments=(WEB,), hpas=(hpa("web", "web"),), cron_hpas=(of_an_hpa,)) == []
    assert seen(cron_hpas=(table("t", "web", GOOD),), unread={"deployments": "forbidden"}) == []


@pytest.mark.parametrize("kind", ["Deployment", "deployment"])
def test_a_table_without_its_target(kind):
    """It is named with what is there instead, however it spells the kind; a lost HPA counts as well."""
    (one,) = found("time-tables", deployments=(WEB,), cron_hpas=(table("t", "wbe", GOOD, kind=kind),))
    assert (one.severity, one.object) == ("critical", "CronHorizontalPodAutoscaler default/t")
    assert one.seen == "its target Deployment wbe does not exist in namespace default"
    assert one.fix == "correct the name of its target (there are web), or delete it"
    lost = table("t", "gone", GOOD, kind="HorizontalPodAutoscaler", api_version="autoscaling/v2")
    (one,) = found("time-tables", deployments=(WEB,), hpas=(hpa("web", "web"),), cron_hpas=(lost,))
    assert one.seen == "its target HorizontalPodAutoscaler gone does not exist in namespace default"
    assert "(there are web)" in one.fix


def test_a_rule_that_cannot_be_read():
    """The others of the table hold; an object of KEDA with a window that cannot be read is not followed at all."""
    (one,) = found("time-tables", deployments=(WEB,), cron_hpas=(table("t", "web", GOOD, "0 0 8 * * 7"),))
    assert one.severity == "warning"
    assert "job-1 ('0 0 8 * * 7')" in one.seen
    assert "write 0 for Sunday" in one.seen
    bad = {**WINDOW, "metadata": {**WINDOW["metadata"], "start": "0 25 * * *"}}
    (one,) = found("time-tables", deployments=(WEB,), scaled_objects=(scaled_object("s", "web", bad),))
    assert (one.severity, one.why) == ("critical", "nothing of it is followed")


def test_two_tables_of_one_target():
    """Each names the other, and the way out."""
    tables = (table("a", "web", GOOD), table("b", "web", GOOD))
    both = found("time-tables", deployments=(WEB,), cron_hpas=tables)
    assert [(one.severity, one.object.split("/")[1]) for one in both] == [("warning", "a"), ("warning", "b")]
    assert both[0].seen == (
        "Deployment web is changed by CronHorizontalPodAutoscaler default/b, too: the last change holds"
    )
    assert both[0].fix == "put all rules into one object"


def test_an_autoscaler_that_takes_back_what_a_table_sets():
    """An HPA or a ScaledObject of the same workload does; the HPA that KEDA made for a table itself does not."""
    tables = (table("t", "web", GOOD),)
    (one,) = found("time-tables", deployments=(WEB,), hpas=(hpa("cart", "web"),), cron_hpas=tables)
    assert (one.severity, one.fix) == ("critical", "let it change the HPA, or delete one of them")
    assert one.seen == (
        "HorizontalPodAutoscaler default/cart scales Deployment web, too, and takes back what this sets"
    )
    load = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
    scaled = (scaled_object("queue", "web", load, WINDOW),)
    (one,) = found("time-tables", deployments=(WEB,), scaled_objects=scaled, cron_hpas=tables)
    assert one.seen.startswith("ScaledObject default/queue scales Deployment web, too")
    made = hpa("keda-hpa-s", "web")
    owner = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "name": "s",
        "uid": "u",
        "controller": True,
    }
    made = msgspec.structs.replace(
        made,
        metadata=msgspec.convert(
            {**msgspec.to_builtins(made.metadata), "ownerReferences": [owner]}, type(made.metadata)
        ),
    )
    assert seen(deployments=(WEB,), hpas=(made,), scaled_objects=(scaled_object("s", "web", WINDOW),)) == []


def test_time_tables_are_read_from_a_cluster():
    """A target of a custom kind is asked for by its scale."""

    async def main(clock):
        kinds = (HPCS, CRON_HPAS, TKESTACK_CRON_HPAS, SCALED_OBJECTS)
        cluster = EmbeddedCluster(Store((*STORED_KINDS, *kinds)), clock, seed=1)
        await cluster.create(HPAS, builders.hpa("web", "web"), namespace="default")
        body = msgspec.to_builtins(table("t", "f", GOOD, kind="Fleet", api_version="example.com/v1"))
        await cluster.create(CRON_HPAS, body, namespace="default")
        return await gather(
            cluster, clock.now, cloud=None, settings=Settings(), recommender=RecommenderSettings()
        )

    snapshot = run_virtual(main, start=START)
    assert snapshot.missing_scales == {("Fleet", "default", "f")}
    assert list(snapshot.time_tables.tables) == [("CronHorizontalPodAutoscaler", "default", "t")]

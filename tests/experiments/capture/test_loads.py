"""Services of a captured scenario."""

from __future__ import annotations

from kubetide.experiments.capture.cluster import Cluster
from kubetide.experiments.capture.loads import Span, loads_of
from kubetide.experiments.capture.observed import Seen
from kubetide.experiments.capture.services import Services
from kubetide.experiments.capture.ticks import Tick
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import LabelSelector, ObjectMeta
from kubetide.objects.workload import Deployment, DeploymentSpec
from kubetide.units.time import Duration, Instant

SECOND = 1_000_000_000


def deployment(namespace, name):
    selector = LabelSelector(match_labels={"app": name})
    return Deployment(
        metadata=ObjectMeta(namespace=namespace, name=name), spec=DeploymentSpec(selector=selector)
    )


def test_names_that_come_to_the_same_file():
    """Each service has a trace of its own, also a-b/c beside a/b-c."""
    keys = [("a", "b-c"), ("a-b", "c")]
    cluster = Cluster(Settings(), workloads={"deployments": [deployment(*key) for key in keys]})
    services = Services(HorizontalSettings(), step=Duration(15 * SECOND))
    for number, key in enumerate(keys):
        tick = Tick(Instant(0), 1, 1, 100.0 * (number + 1), Instant(0))
        services.others["Deployment", *key] = [tick]
    loads, traces = loads_of(Seen(cluster, services), Span(Instant(0), Duration(15 * SECOND)), [])
    assert [traces[load["load"]["trace"]] for load in loads] == [[10.0], [20.0]]
    assert [load["namespace"] for load in loads] == ["a", "a-b"]

"""Walks through what the Kubernetes documentation does with HPAs, and what people do beside it.

A controller reports failures in every period, and of one object only 25 events at once: those after that are cut
off for minutes. So whatever fails on a walk is the last that has events of its HPA.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import yaml
from tests.plane.aggregated import API_SERVICES
from tests.plane.hpa_walk import COMPUTED, Walk
from tests.plane.metric_apis import CUSTOM, EXTERNAL
from tests.plane.towns import CRON_TABS, ROOT
from tests.plane.usage_api import METRICS

from kubetide.objects.kinds import DEPLOYMENTS, HPAS, STATEFUL_SETS
from kubetide.testing import builders

EXAMPLES = ROOT / "examples"
GOT = "SucceededGetScale"
READY = "ReadyForNewScale"
VALID = "ValidMetricFound"
WITHIN = "DesiredWithinRange"
FEW = "TooFewReplicas"
MANY = "TooManyReplicas"
FAILED = "FailedGetResourceMetric"
REQUESTS = ("ingresses.networking.k8s.io", "main-route", "requests-per-second")


async def apply(walk: Walk, file: str, app: str) -> None:
    """Apply an example, the Deployment first: an HPA that is there before its pods reports their absence."""
    documents = list(yaml.safe_load_all((EXAMPLES / file).read_text()))
    await walk.place.cluster.create(DEPLOYMENTS, documents[0], namespace=walk.place.home)
    await walk.place.until(f"{app} runs", lambda: len(walk.place.running(app)) == 1)
    await walk.kubectl("apply", "-f", str(EXAMPLES / file))


async def php_apache(walk: Walk) -> None:
    """Walkthrough of the documentation: CPU by ``kubectl autoscale``, then several metrics."""
    place, values = walk.place, walk.place.values
    app, target = "php-apache", "Deployment/php-apache"
    place.load.set(app, 0)
    await apply(walk, "hpa/php-apache.yaml", app)
    said = await walk.kubectl("autoscale", "deployment", app, "--cpu=50%", "--min=1", "--max=10")
    assert said == "horizontalpodautoscaler.autoscaling/php-apache autoscaled\n"
    await walk.scene("idle", app, f"{target}  cpu: 0%/50%  1  10  1", READY, VALID, FEW)
    # Step by step: what the second of two rescales in a row reports as its reason is chance.
    place.load.set(app, 380)
    await walk.scene("some load", app, f"{target}  cpu: 47%/50%  1  10  4", READY, VALID, WITHIN)
    await place.until("four run", lambda: len(place.running(app)) == 4)
    place.load.set(app, 660)
    await walk.scene("under load", app, f"{target}  cpu: 47%/50%  1  10  7", READY, VALID, WITHIN)
    place.load.set(app, 0)
    await walk.scene("idle again", app, f"{target}  cpu: 0%/50%  1  10  1", READY, VALID, FEW)

    # 500 packets a pod of 1,000; half of the requests of an Ingress that 10,000 are meant for.
    values.pods["packets-per-second"] = {app: 500_000}
    values.objects[REQUESTS] = "5k"
    await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/several-metrics.yaml"))
    row = f"{target}  cpu: 0%/50%, {{}}/1k + 1 more...  1  10  {{}}"
    await walk.scene("several", app, row.format(500, 1), READY, VALID, WITHIN)
    values.pods["packets-per-second"] = {app: 2_700_000}
    await walk.scene("packets", app, row.format(900, 3), READY, VALID, WITHIN)
    await place.until("three are ready", lambda: len(place.running(app)) == 3)
    values.objects[REQUESTS] = "100k"
    await walk.scene("requests", app, row.format(270, 10), READY, VALID, MANY)
    values.pods["packets-per-second"] = {app: 500_000}
    values.objects[REQUESTS] = "1k"
    await walk.scene("quiet", app, row.format(500, 1), READY, VALID, WITHIN)
    values.pods["packets-per-second"] = {app: 2_700_000}
    await walk.scene("packets again", app, row.format(900, 3), READY, VALID, WITHIN)
    await place.until("three are left", lambda: len(place.running(app)) == 3)
    # Fewer would do by what is left: with a value unknown there must not be fewer.
    values.pods["packets-per-second"] = {app: 1_500_000}
    del values.objects[REQUESTS]
    await walk.scene("no requests", app, row.format(500, 3), GOT, "FailedGetObjectMetric", WITHIN)


async def one_container(walk: Walk) -> None:
    """ContainerResource: what the other container uses does not count."""
    place, app, target = walk.place, "shipped", "Deployment/shipped"
    place.load.set(app, 30, "application")
    place.load.set(app, 500, "log-shipper")
    await apply(walk, "hpa/one-container.yaml", app)
    await walk.scene("shipping", app, f"{target}  cpu: 30%/60%  1  6  1", READY, VALID, WITHIN)
    place.load.set(app, 170, "application")
    await walk.scene("serving", app, f"{target}  cpu: 56%/60%  1  6  3", READY, VALID, WITHIN)
    place.load.set(app, 30, "application")
    await walk.scene("shipping again", app, f"{target}  cpu: 30%/60%  1  6  1", READY, VALID, WITHIN)


async def to_zero(walk: Walk) -> None:
    """External metric: from one to none, and back from none."""
    place, app, target = walk.place, "worker", "Deployment/worker"
    queue = {"queue": "worker_tasks"}
    others = ({"queue": "mail"}, "1k")
    place.values.external["queue_messages_ready"] = [(queue, "20"), others]
    await apply(walk, "hpa/to-zero.yaml", app)
    await walk.scene("one", app, f"{target}  20/30 (avg)  0  5  1", READY, VALID, WITHIN)
    place.values.external["queue_messages_ready"] = [(queue, "0"), others]
    nothing = "-9223372036854775808m/30 (avg)"
    await walk.scene("none", app, f"{target}  {nothing}  0  5  0", READY, VALID, WITHIN, "ScaledToZero")
    await place.until("nothing runs", lambda: not place.running(app))
    place.values.external["queue_messages_ready"] = [(queue, "70"), others]
    row = f"{target}  23334m/30 (avg)  0  5  3"
    await walk.scene("three", app, row, READY, VALID, WITHIN, "NotScaledToZero")
    await place.until("three run", lambda: len(place.running(app)) == 3)
    del place.values.external["queue_messages_ready"]
    failed = "FailedGetExternalMetric"
    row = f"{target}  <unknown>/30 (avg)  0  5  3"
    await walk.scene("unknown", app, row, GOT, failed, WITHIN, "NotScaledToZero")
    place.values.external["queue_messages_ready"] = [(queue, "0"), others]
    row = f"{target}  {nothing}  0  5  0"
    await walk.scene("none again", app, row, READY, VALID, WITHIN, "ScaledToZero")


async def custom_kind(walk: Walk) -> None:
    """A CronTab, whose pods another program makes."""
    place, name = walk.place, "my-new-cron-object"
    target = f"{CRON_TABS.kind}/{name}"
    place.load.set(name, 100)
    await walk.kubectl("apply", "-f", str(EXAMPLES / "crontab/crontab.yaml"))
    await place.until("its pod runs", lambda: len(place.running(name)) == 1)
    await walk.kubectl("apply", "-f", str(EXAMPLES / "crontab/hpa.yaml"))
    await walk.scene("one", name, f"{target}  cpu: 20%/50%  1  8  1", READY, VALID, WITHIN)
    place.load.set(name, 700)
    await walk.scene("three", name, f"{target}  cpu: 46%/50%  1  8  3", READY, VALID, WITHIN)
    place.load.set(name, 100)
    await walk.scene("one again", name, f"{target}  cpu: 20%/50%  1  8  1", READY, VALID, WITHIN)


async def missing_inputs(walk: Walk) -> None:
    """The most frequent mistakes: no metrics, no requests, no target."""
    place, row = walk.place, "Deployment/{}  cpu: {}/50%  1  3  1"
    place.load.set("hungry", 100)
    place.load.set("leaving", 50)
    for app in ("modest", "hungry"):
        await walk.kubectl("create", "deployment", app, "--image=registry.test/app:1")
    body = builders.deployment("leaving", replicas=1, cpu="100m")
    await place.cluster.create(DEPLOYMENTS, body, namespace=place.home)
    for app in ("modest", "hungry", "leaving"):
        await place.until(f"{app} runs", lambda app=app: len(place.running(app)) == 1)
        await walk.kubectl("autoscale", "deployment", app, "--cpu=50%", "--max=3")
    unknown = "<unknown>"
    says = "no metrics returned"
    await walk.scene("no metrics", "modest", row.format("modest", unknown), GOT, FAILED, says=says)
    says = "missing request for cpu"
    await walk.scene("no requests", "hungry", row.format("hungry", unknown), GOT, FAILED, says=says)
    there = row.format("leaving", "50%")
    await walk.scene("a target", "leaving", there, READY, VALID, WITHIN)
    # Its pods stay, so that nothing but the target is missed at any moment.
    await walk.kubectl("delete", "deployment", "leaving", "--cascade=orphan")
    await walk.scene("no target", "leaving", there, "FailedGetScale", VALID, WITHIN)


async def by_hand(walk: Walk) -> None:
    """Somebody sets replicas by hand: none switches the HPA off, too few and too many are corrected at once."""
    place, app = walk.place, "manual"
    # From none on it depends on how fast the first pod runs whether somebody misses its metrics.
    walk.passing |= {FAILED, COMPUTED}
    place.load.set(app, 100)
    await place.cluster.create(
        DEPLOYMENTS, builders.deployment(app, replicas=2, cpu="100m"), namespace=place.home
    )
    await place.until("two run", lambda: len(place.running(app)) == 2)
    await walk.kubectl("autoscale", "deployment", app, "--cpu=50%", "--min=2", "--max=4")

    async def scale(replicas: int) -> None:
        await walk.kubectl("scale", "deployment", app, f"--replicas={replicas}")

    row = "Deployment/manual  cpu: {}/50%  {}  4  {}"
    await walk.scene("two", app, row.format("50%", 2, 2), READY, VALID, WITHIN)
    await scale(0)
    await walk.scene("off", app, row.format("<unknown>", 2, 0), GOT, "ScalingDisabled", WITHIN)
    await scale(1)
    reported = "New size: 2; reason: Current number of replicas below Spec.MinReplicas"
    await walk.scene("on again", app, row.format("50%", 2, 2), READY, VALID, WITHIN, reported=reported)
    await scale(6)
    reported = "New size: 4; reason: Current number of replicas above Spec.MaxReplicas"
    await walk.scene("from six", app, row.format("50%", 2, 2), READY, VALID, WITHIN, reported=reported)
    await walk.kubectl("patch", "hpa", app, "--patch", '{"spec": {"minReplicas": 3}}')
    await walk.scene("at least three", app, row.format("33%", 3, 3), READY, VALID, FEW)


async def behavior(walk: Walk) -> None:
    """Policies, windows and tolerances of the HPA's own."""
    place = walk.place
    slow = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 1800}], "tolerance": "0.5"}
    rules = {
        "careful": {"scaleUp": slow, "scaleDown": {"selectPolicy": "Disabled"}},
        "steady": {"scaleUp": {"stabilizationWindowSeconds": 600}},
    }
    for app in rules:
        place.load.set(app, 50)
        body = builders.deployment(app, replicas=1, cpu="100m")
        await place.cluster.create(DEPLOYMENTS, body, namespace=place.home)
    await place.until("both run", lambda: all(len(place.running(app)) == 1 for app in rules))
    for app, own in rules.items():
        body = builders.hpa(app, app, extra={"spec": {"behavior": own}})
        await place.cluster.create(HPAS, body, namespace=place.home)

    def row(app: str, percent: int, replicas: int) -> str:
        return f"Deployment/{app}  cpu: {percent}%/50%  1  10  {replicas}"

    for app in rules:
        await walk.scene(f"{app} at rest", app, row(app, 50, 1), READY, VALID, WITHIN)
        place.load.set(app, 70)
    await walk.scene("tolerated", "careful", row("careful", 70, 1), READY, VALID, WITHIN)
    for app in rules:
        place.load.set(app, 400)
    await walk.scene("limited", "careful", row("careful", 133, 3), READY, VALID, "ScaleUpLimit")
    await walk.scene("stabilized", "steady", row("steady", 400, 1), "ScaleUpStabilized", VALID, WITHIN)
    place.load.set("careful", 50)
    await walk.scene("never down", "careful", row("careful", 16, 3), READY, VALID, "ScaleDownLimit")


async def stateful_set(walk: Walk) -> None:
    """A StatefulSet by an average value, as ``kubectl autoscale`` writes it."""
    place, app = walk.place, "db"
    place.load.set(app, 40)
    body = builders.deployment(app, replicas=1, cpu="100m")
    body["spec"]["serviceName"] = app
    body = {**body, "apiVersion": STATEFUL_SETS.api_version, "kind": STATEFUL_SETS.kind}
    await place.cluster.create(STATEFUL_SETS, body, namespace=place.home)
    await place.until("one runs", lambda: len(place.running(app)) == 1)
    await walk.kubectl("autoscale", "statefulset", app, "--cpu=50m", "--max=4")
    row = "StatefulSet/db  cpu: {}/50m  1  4  {}"
    await walk.scene("one", app, row.format("40m", 1), READY, VALID, WITHIN)
    place.load.set(app, 140)
    await walk.scene("three", app, row.format("46m", 3), READY, VALID, WITHIN)
    place.load.set(app, 1000)
    await walk.scene("four", app, row.format("250m", 4), READY, VALID, MANY)


async def without_metrics(walk: Walk) -> None:
    """After the other walks: what serves the metrics cannot be reached, and then is not registered any more."""
    cluster, apis = walk.place.cluster, [group.api_service for group in (METRICS, CUSTOM, EXTERNAL)]
    # Events of the moments in between are chance; the conditions have the final state.
    walk.passing |= {
        FAILED,
        *(f"FailedGet{kind}Metric" for kind in ("Pods", "Object", "External", "ContainerResource")),
    }
    walk.passing.add(COMPUTED)
    app, several = "php-apache", "Deployment/php-apache  {}  1  10  3"
    none = "Deployment/worker  <unknown>/30 (avg)  0  5  0"
    down = "the server is currently unable to handle the request (get {})"
    not_found = "the server could not find the requested resource (get {})"

    for name in apis:
        await cluster.patch(API_SERVICES, name, {"spec": {"service": {"port": 1}}})
    row = several.format("cpu: <unknown>/50%, <unknown>/1k + 1 more...")
    await walk.scene("usage is down", app, row, GOT, FAILED, WITHIN, says=down.format("pods.metrics.k8s.io"))
    says = down.format("queue_messages_ready.external.metrics.k8s.io")
    await walk.scene("series are down", "worker", none, GOT, "FailedGetExternalMetric", WITHIN, says=says)
    first_away = ("patch", "hpa", app, "--type=json", '--patch=[{"op": "remove", "path": "/spec/metrics/0"}]')
    await walk.kubectl(*first_away)
    row, says = several.format("<unknown>/1k, <unknown>/10k"), "no known available metric versions found"
    await walk.scene("values of pods are down", app, row, GOT, "FailedGetPodsMetric", WITHIN, says=says)
    await walk.kubectl(*first_away)
    row, reason = several.format("<unknown>/10k"), "FailedGetObjectMetric"
    await walk.scene("values of objects are down", app, row, GOT, reason, WITHIN, says=says)

    for name in apis:
        await cluster.delete(API_SERVICES, name)
    says = "no custom metrics API (custom.metrics.k8s.io) registered"
    await walk.scene("no values", app, row, GOT, reason, WITHIN, says=says)
    says = not_found.format("queue_messages_ready.external.metrics.k8s.io")
    await walk.scene("no series", "worker", none, GOT, "FailedGetExternalMetric", WITHIN, says=says)
    row, says = "Deployment/shipped  cpu: <unknown>/60%  1  6  1", not_found.format("pods.metrics.k8s.io")
    await walk.scene("no usage", "shipped", row, GOT, "FailedGetContainerResourceMetric", WITHIN, says=says)


WALKS: dict[str, Callable[[Walk], Awaitable[None]]] = {
    "php-apache": php_apache,
    "one container": one_container,
    "to zero": to_zero,
    "custom kind": custom_kind,
    "nothing to go by": missing_inputs,
    "by hand": by_hand,
    "behavior": behavior,
    "StatefulSet": stateful_set,
}

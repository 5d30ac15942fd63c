"""``kubetide run`` scales on a real control plane by what a real Prometheus has scraped, without an adapter between."""

from __future__ import annotations

import pytest
from tests.cluster.prometheus_server import (
    PASSWORD,
    USER,
    exporter,
    find_prometheus,
    running_prometheus,
)
from tests.plane.hpa_walk import TIMES, Walk
from tests.plane.hpa_walks import EXAMPLES, GOT, READY, VALID, WITHIN
from tests.plane.towns import ROOMY, kubetide_run, town

from kubetide.runtime.timing.clock import run_real

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_prometheus() is None, reason="not there: prometheus (KUBETIDE_PROMETHEUS)"),
]

ORDERS = 'queue_messages_ready{queue="worker_tasks",zone="%s"}'
OTHERS = 'queue_messages_ready{queue="mail"}'
SELECTOR = (
    "&LabelSelector{MatchLabels:map[string]string{horizontal.kubetide.io/source: prometheus,"
    "queue: worker_tasks,},MatchExpressions:[]LabelSelectorRequirement{},}"
)
QUERY = '{__name__="queue_messages_ready",queue="worker_tasks"}'


@pytest.fixture
def scraped():
    """Two zones of the queue, and another queue."""
    with exporter(**{ORDERS % "a": 5, ORDERS % "b": 15.5, OTHERS: 1000}) as running:
        yield running


@pytest.fixture
def prometheus(scraped, tmp_path):
    """A server that speaks TLS and requires a password, and the flags that lead to it."""
    folder = tmp_path / "prometheus"
    folder.mkdir()
    with running_prometheus(folder, scraped, guarded=True) as server:
        (tmp_path / "ca.pem").write_text(server.authority)
        (tmp_path / "password").write_text(PASSWORD)
        yield (
            f"--prometheus-url={server.url}",
            f"--prometheus-ca-file={tmp_path}/ca.pem",
            f"--prometheus-user={USER}",
            f"--prometheus-password-file={tmp_path}/password",
        )


def test_a_queue_straight_from_prometheus(audited, scraped, prometheus, tmp_path):
    """Up with the queue, down with it; the series of all zones count together, and without any nothing is known.

    That comes last: what fails is reported in each period, and of further events none after the 25th.
    """

    async def run(clock):
        async with town(audited, clock, tmp_path, ROOMY) as place:
            walk = Walk(place)
            app, row = "consumer", "Deployment/consumer  {}/30 (avg)  1  8  {}"
            flags = ("--act", "--controllers=horizontal", *TIMES, *prometheus)
            async with kubetide_run(place, "consumer", *flags):
                await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/prometheus.yaml"))
                await walk.scene("few", app, row.format("20500m", 1), READY, VALID, WITHIN)
                scraped.series[ORDERS % "a"] = 180
                await walk.scene("many", app, row.format("27929m", 7), READY, VALID, WITHIN)
                for zone, length in (("a", 30), ("b", 0)):
                    scraped.series[ORDERS % zone] = length
                await walk.scene("few again", app, row.format("30", 1), READY, VALID, WITHIN)
                scraped.series[ORDERS % "a"] = 195.5
                await walk.scene("many again", app, row.format("27929m", 7), READY, VALID, WITHIN)
                for zone in "ab":
                    del scraped.series[ORDERS % zone]
                text = (
                    f"unable to get external metric HOME/queue_messages_ready/{SELECTOR}: "
                    f"unable to fetch metrics from Prometheus: {QUERY}: no series"
                )
                failed = "FailedGetExternalMetric"
                await walk.scene("unknown", app, row.format("<unknown>", 7), GOT, failed, WITHIN, says=text)
            rescaled = [
                event["message"]
                for event in walk.scenes["many again"].events
                if event["reason"] == "SuccessfulRescale"
            ]
            name = f"external metric queue_messages_ready({SELECTOR})"
            assert rescaled == [
                "New size: 1; reason: All metrics below target",
                f"New size: 4; reason: {name} above target",
                f"New size: 7; reason: {name} above target",
            ]

    run_real(run)

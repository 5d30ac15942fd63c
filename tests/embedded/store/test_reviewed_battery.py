"""Webhooks that allow everything and change nothing are not noticed."""

from __future__ import annotations

import pytest
from tests.embedded.admission.asking import Answering, patch, rule, webhook

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing.cluster_battery import CASES
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
EVERYTHING = [rule(apiGroups=["*"], apiVersions=["*"], resources=["*/*"])]


def say(name, request):
    """A mutating webhook sends a patch that leaves the object as it is."""
    if name == "m.x.y" and request["object"] is not None:
        same = {"op": "add", "path": "/apiVersion", "value": request["object"]["apiVersion"]}
        return patch(same)
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_case(case):
    """Each case of the Cluster port's battery holds with every write under review."""

    async def main(clock):
        caller = Answering(say)
        cluster = EmbeddedCluster(Store(), clock, seed=1, webhooks=caller)
        for kind, name in ((MUTATING_WEBHOOKS, "m.x.y"), (VALIDATING_WEBHOOKS, "v.x.y")):
            body = {"metadata": {"name": name}, "webhooks": [webhook(name, rules=EVERYTHING)]}
            await cluster.create(kind, body)
        before = cluster.rest.store.version
        await case(cluster, clock)
        if cluster.rest.store.version > before:  # the case has written something
            assert {"m.x.y", "v.x.y"} <= set(caller.names)

    run_virtual(main, start=START)

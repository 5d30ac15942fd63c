"""Parameters of ProvisioningRequests that have a value which nobody understands are reported on the request."""

from __future__ import annotations

import pytest
from tests.nodes.live import play
from tests.nodes.requests import ATOMIC, CHECK, provisioned, request

from kubetide.nodes.capacity.definitions import definitions
from kubetide.nodes.capacity.provisioning.parameters import unread_parameters
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, POD_TEMPLATES, PROVISIONING_REQUESTS
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds

ODD_RETRY = (
    'spec.parameters[noRetry]: "yes" is neither "true" nor "false"; the request is served as without it, '
    "until it is replaced by one with such a value"
)


@pytest.mark.parametrize(
    ("parameters", "fields", "said"),
    [
        ({"noRetry": "yes"}, {}, ODD_RETRY),
        ({"partialCapacityCheck": "all"}, {}, '"all" is neither "bookPartial" nor "checkOnly"'),
        ({"noRetry": "false", "partialCapacityCheck": "checkOnly", "processorInstance": ""}, {}, ""),
        ({"noRetry": "yes", "processorInstance": "other"}, {}, ""),
        ({"noRetry": "yes"}, {"kind": ATOMIC}, ""),
        ({"noRetry": "yes"}, {"conditions": [provisioned(minutes(1))]}, ""),
    ],
)
def test_values_that_nobody_understands(parameters, fields, said):
    """They are named with the values that there are, while the request waits; upstream serves it as without them."""
    found = unread_parameters(request("r", ("small", 1), **fields, **parameters), Settings())
    assert found == said if not said else said in found


def test_the_request_has_an_event():
    """It says what is wrong and what to do, and counts as an object that is not understood until the request is gone."""

    async def story(world):
        for body in definitions():
            await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        worker = {"metadata": {"name": "worker"}, "template": {"spec": builders.pod_spec(cpu="900")}}
        await world.cluster.create(POD_TEMPLATES, worker, namespace="default")
        sets = [{"podTemplateRef": {"name": "worker"}, "count": 1}]
        spec = {"provisioningClassName": CHECK, "podSets": sets, "parameters": {"noRetry": "yes"}}
        made = {"metadata": {"name": "odd"}, "spec": spec}
        await world.cluster.create(PROVISIONING_REQUESTS, made, namespace="default")
        await world.after(seconds(25))
        assert await world.events("NotUnderstood") == [ODD_RETRY]
        assert world.controller.not_understood == {"provisioningrequests.autoscaling.x-k8s.io": 1}
        await world.cluster.delete(PROVISIONING_REQUESTS, "odd", namespace="default")
        await world.after(seconds(50))
        assert world.controller.not_understood == {"provisioningrequests.autoscaling.x-k8s.io": 0}

    play(story, enable_provisioning_requests=True)

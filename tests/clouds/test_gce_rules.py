"""Single rules of Compute Engine's provider: templates, errors, prices, machine types, bounds."""

from __future__ import annotations

import msgspec
import pytest
from tests.clouds.vendors.gce import url

from kubetide.clouds.gce.instances import ManagedInstance, managed_instances
from kubetide.clouds.gce.machine_types import MachineType
from kubetide.clouds.gce.prices import node_price
from kubetide.clouds.gce.template import InstanceTemplate, build_node
from kubetide.ports.errors import CloudError
from kubetide.units.quantity import whole
from kubetide.units.time import hours

WEB = url("web")
MACHINE = MachineType(name="n1-standard-4", cpu=4, memory_bytes=15 << 30)
BOOT = {"boot": True, "initializeParams": {"diskSizeGb": "100", "diskType": "pd-ssd"}}


def node_of(kube_env, *disks):
    properties = {
        "machineType": MACHINE.name,
        "disks": list(disks or (BOOT,)),
        "metadata": {"items": [{"key": "kube-env", "value": kube_env}]},
    }
    read = msgspec.convert({"name": "t", "properties": properties}, InstanceTemplate, strict=False)
    return build_node(read, MACHINE, "us-central1-b")


def price_of(labels=None, annotations=None, **capacity):
    return node_price(
        {"node.kubernetes.io/instance-type": "n1-standard-1", **(labels or {})},
        annotations or {},
        capacity,
        hours(1),
    )


def test_eviction_of_storage_is_a_part_of_all_of_it():
    """A tenth of the file system stays free, however much of it is reserved."""
    node = node_of("AUTOSCALER_ENV_VARS: kube_reserved=cpu=60m,ephemeral-storage=30Gi\n")
    size = whole(node.status.capacity["ephemeral-storage"])
    assert whole(node.status.allocatable["ephemeral-storage"]) == size - (30 << 30) - int(0.1 * size)


def test_a_boot_disk_without_parameters_is_passed_over():
    """The first boot disk that says its size is the node's storage."""
    assert "ephemeral-storage" in node_of("", {"boot": True}, BOOT).status.capacity


def test_a_kube_env_without_content_is_an_error():
    """An item without a value is not the same as no item."""
    with pytest.raises(CloudError, match="no kube-env content in metadata"):
        node_of(None)


def test_messages_are_those_of_errors_that_count():
    """An error that means nothing for a machine that is up adds neither a code nor its text."""
    errors = [
        {"code": "CPU_QUOTA", "message": "no CPUs"},
        {"code": "CONDITION_NOT_MET", "message": "starting"},
    ]
    one = {
        "instance": "https://x/projects/p/zones/z/instances/i",
        "instanceStatus": "RUNNING",
        "currentAction": "RECREATING",
        "lastAttempt": {"errors": {"errors": errors}},
    }
    (found,) = managed_instances([msgspec.convert(one, ManagedInstance)])
    assert (found.error.error_code, found.error.error_message) == ("QUOTA_EXCEEDED", "no CPUs")

"""The providers' reading of tags, configurations and templates, beyond the recorded cases."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.alibaba.config import check_file, read_environment
from kubetide.clouds.azure.config import read_config
from kubetide.clouds.azure.discovery import Bounds, matching_bounds, set_bounds
from kubetide.clouds.azure.discovery import parse_discovery as parse_azure
from kubetide.clouds.azure.skus import find_type, shipped_types
from kubetide.clouds.azure.tags import raw_options
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.common.readings import GroupReading, group_of_reading
from kubetide.clouds.common.sizes import check_delete, decreased, increased, parse_node_specs
from kubetide.clouds.externalgrpc.cloud import ExternalGrpcCloud
from kubetide.clouds.externalgrpc.config import grpc_config
from kubetide.clouds.gce import kube_env
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.discovery import parse_discovery as parse_gce
from kubetide.clouds.gce.machine_types import MachineType
from kubetide.clouds.gce.names import Names
from kubetide.clouds.gce.settings import parse_config, parse_nodes
from kubetide.clouds.gce.template import InstanceTemplate, build_node
from kubetide.clouds.registry import CloudContext, CloudFlags, CloudNotFound, cloud_factory, provider_names
from kubetide.clouds.tencent.cloud import TencentCloud
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.ports.cloud import Instance, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.testing import builders
from kubetide.units.time import seconds


def test_a_batch_may_not_pass_the_minimum():
    """Two of three nodes may go with a minimum of one, three may not; upstream looks at the first only."""
    check_delete(3, 1, 2)
    with pytest.raises(CloudError, match=r"min size reached.*size 3, minimum 1, to delete 3"):
        check_delete(3, 1, 3)


def test_bounds_of_sizes():
    """An increase may reach the maximum, a decrease the instances that exist."""
    assert increased(2, 1, 3) == 3
    assert decreased(3, 1, 2) == 2
    with pytest.raises(CloudError, match="size increase too large - desired:4 max:3"):
        increased(3, 1, 3)
    with pytest.raises(CloudError, match="existingNodes: 3"):
        decreased(3, 1, 3)
    with pytest.raises(CloudError, match="failed to parse node group spec: wrong nodes configuration: x"):
        parse_node_specs(["x"])


def test_a_group_that_cannot_be_read_is_shown_as_it_was():
    """The earlier view stays and says why; a group that was never read cannot grow."""
    reading = GroupReading(id="web", min_size=0, max_size=9, target_error="throttled")
    earlier = NodeGroup(id="web", max_size=9, target_size=4)
    shown = group_of_reading(reading, {"web": earlier})
    assert (shown.target_size, shown.stale) == (4, "throttled")
    unknown = group_of_reading(reading, {})
    assert (unknown.max_size, unknown.stale) == (0, "throttled")


def test_names_of_new_instances():
    """Names have the base and four letters without vowels; none is drawn twice or taken."""
    names = Names(3).draw("gke-web", 500, [])
    assert len(set(names)) == 500
    assert {one.removeprefix("gke-web-") for one in names} <= {
        one.removeprefix("gke-web-") for one in names if len(one) == len("gke-web-") + 4
    }
    assert not set("aeiou013") & set("".join(one.removeprefix("gke-web-") for one in names))
    assert Names(3).draw("gke-web", 1, names[:1]) == names[1:2]


def test_a_negative_memory_is_shown_as_upstream_shows_it():
    """More is reserved than a machine has: allocatable is negative, and no pod fits."""
    env = 'AUTOSCALER_ENV_VARS: "kube_reserved=memory=300Gi"'
    template = msgspec.convert(
        {
            "name": "t",
            "properties": {
                "machineType": "e2-standard-4",
                "disks": [],
                "metadata": {"items": [{"key": "kube-env", "value": env}]},
            },
        },
        InstanceTemplate,
    )
    node = build_node(template, MachineType(cpu=4, memory_bytes=16 << 30), "us-central1-b")
    assert node.status.allocatable["memory"].startswith("-")
    assert "ephemeral-storage" not in node.status.capacity


@pytest.mark.parametrize(
    ("text", "memory", "ratio"),
    [
        ("memory.available=250Mi", 250 << 20, 0.1),
        ("memory.available=1.5G", 1_500_000_000, 0.1),
        ("memory.available=1.5Gi,nodefs.available=5.5%", 100 << 20, 0.055),
        ("nodefs.available=101%", 100 << 20, 0.1),
        ("nodefs.available=5%%", 100 << 20, 0.1),
        ("broken", 100 << 20, 0.1),
    ],
)
def test_eviction_thresholds(text, memory, ratio):
    """An unreadable threshold is the default; whole bytes are read, and fractions of binary units are not."""
    found = kube_env.eviction({"AUTOSCALER_ENV_VARS": f"evictionHard={text}"})
    assert found == (memory, pytest.approx(ratio))


def test_configuration_of_gce():
    """The keys of the section count in any case, others do not."""
    found = parse_config('[Global]\nproject-id = shop\nlocal-zone = "us-central1-b"\nmultizone = true\n')
    assert (found.project_id, found.local_zone) == ("shop", "us-central1-b")
    with pytest.raises(CloudError, match="wrong url"):
        parse_nodes(("0:3:web",))


def test_bounds_of_discovered_sets():
    """All specs must match; the largest minimum and the smallest maximum hold, and tags beat both."""
    specs = [parse_azure("label:a=b,min=1,max=9"), parse_azure("label:c=d,min=2,max=5")]
    assert matching_bounds(specs, {"a": "b", "c": "d"}) == Bounds(2, 5)
    assert matching_bounds(specs, {"a": "b"}) is None
    assert set_bounds(Bounds(2, 5), {"max": "7"}) == (2, 7)
    with pytest.raises(CloudError, match="max:1 < min:2"):
        set_bounds(Bounds(2, 5), {"max": "1"})
    with pytest.raises(CloudError, match="tag min=x"):
        set_bounds(Bounds(2, 5), {"min": "x"})
    with pytest.raises(CloudError, match="no tag max"):
        set_bounds(Bounds(2, None), {})
    with pytest.raises(CloudError, match="invalid min size"):
        set_bounds(Bounds(2, 5), {"min": None})


def test_sizes_that_are_shipped():
    """No size appears twice in the list, in any case, and a promotional size may replace the ordinary one."""
    assert len(shipped_types()) > 1300
    assert find_type("STANDARD_D4S_V3").memory_mib == 16384
    assert find_type("Standard_D4s_v3_Promo").vcpu == 4
    assert find_type("Standard_D4s_PROMO_v3").vcpu == 4


def test_options_of_azure_are_tags_that_begin_so():
    """A tag that only holds the prefix gives a label, but no option."""
    key = "k8s.io_cluster-autoscaler_node-template_autoscaling-options_scaledownunneededtime"
    assert raw_options({key: "5M"}) == {"scaledownunneededtime": "5m"}
    assert raw_options({f"x{key}": "5m"}) == {}


@pytest.mark.parametrize("cloud", [AlibabaCloud, ExternalGrpcCloud, GceCloud, TencentCloud])
def test_a_node_that_goes_is_gone_where_the_cloud_says_nothing_of_machines(cloud):
    """There upstream's HasInstance is not implemented: the taint counts, so a lowered size waits for no node too few."""
    taint = {"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}
    node = builders.node("a", extra={"spec": {"providerID": "x://a", "taints": [taint]}})
    state = State(Settings(knows_machines=cloud.knows_machines))
    state.apply(Delta(nodes=(msgspec.convert(node, Node, strict=False),)))
    state.set_groups([NodeGroup(id="g", target_size=1, instances=(Instance(provider_id="x://a"),))])
    assert not state.has_instance("a")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("[::1]", "missing port in address"),
        ("[::1]80:", "missing port in address"),
        ("[::1]:a:80", "too many colons in address"),
        ("[::1:80", "missing ']' in address"),
        ("a[:80", "unexpected '[' in address"),
        ("a]:80", "unexpected ']' in address"),
    ],
)
def test_addresses_of_externalgrpc(address, problem):
    """A host with colons stands in brackets, and nothing else does."""
    with pytest.raises(CloudConfigError, match=re.escape(f"address {address}: {problem}")):
        grpc_config(f"address: '{address}'")
    assert grpc_config("address: '[::1]:80'").address == "[::1]:80"


def test_an_address_of_externalgrpc_that_looks_like_a_time_is_text():
    """Kubernetes' reader of YAML knows no numbers of base 60."""
    assert grpc_config("address: 10:50").address == "10:50"


def test_keys_of_externalgrpc():
    """Keys count in any case; an empty time-out is none, and a switch that stands for text is text."""
    assert grpc_config("Address: h:1\nGRPC_timeout: 2s").timeout == seconds(2)
    with pytest.raises(CloudConfigError, match='invalid duration ""'):
        grpc_config("address: h:1\ngrpc_timeout: ''")
    with pytest.raises(CloudConfigError, match="address true: missing port"):
        grpc_config("address: true")


@pytest.mark.parametrize(
    ("file", "environment", "text"),
    [
        ('{"resourceGroup": 3}', {}, "resourceGroup is 3, expected str"),
        ("{}", {}, "resource group not set"),
        ('{"resourceGroup":"g","cloud":"moon"}', {}, "tenant ID not set"),
        (
            '{"resourceGroup":"g","cloud":"moon","useManagedIdentityExtension":true}',
            {},
            "unknown cloud moon",
        ),
        ('{"vmType":"moon"}', {}, "resource group not set"),
        ('{"vmssVmsCacheTTL":4294967296}', {}, "VmssVmsCacheTTL value 4294967296 is too large"),
        ("{}", {"AZURE_VMSS_CACHE_TTL": "2147483648"}, 'AZURE_VMSS_CACHE_TTL "2147483648": .*out of range'),
        ("{}", {"ENABLE_BACKOFF": "x", "AZURE_MAX_DEPLOYMENT_COUNT": "y"}, "AZURE_MAX_DEPLOYMENT_COUNT"),
        (
            '{"resourceGroup":"g","useManagedIdentityExtension":true,"useWorkloadIdentityExtension":true}',
            {},
            "can not combine",
        ),
        ('{"resourceGroup":"g"}', {"ARM_TENANT_ID": " "}, "tenant ID not set"),
        ('{"resourceGroup":"g","tenantId":"t"}', {}, "ARM Client ID not set"),
    ],
)
def test_refused_configurations_of_azure(file, environment, text):
    """The error names a missing or contradictory field."""
    with pytest.raises(CloudError, match=text):
        read_config(file, environment)


def test_identities_of_alibaba():
    """A whole access key wins over a role; new names win over old; else the machine's own role is used."""
    role = {
        "REGION_ID": "cn-hangzhou",
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "new",
        "ALICLOUD_OIDC_PROVIDER_ARN": "old",
        "ALICLOUD_OIDC_TOKEN_FILE_PATH": "/token",
        "ALICLOUD_ROLE_ARN": "role",
        "ALICLOUD_SESSION_NAME": "me",
    }
    found = read_environment(role)
    assert (found.auth, found.oidc_provider_arn, found.oidc_token_file) == ("rrsa", "new", "/token")
    assert read_environment({**role, "ACCESS_KEY_ID": "k", "ACCESS_KEY_SECRET": "s"}).auth == "access key"
    assert read_environment({"REGION_ID": "cn-hangzhou"}).auth == "metadata service"
    check_file("# nothing\n")
    with pytest.raises(CloudError, match="global"):
        check_file("[global]\nkey=1\n")


def connect(name, environment, **flags):
    context = CloudContext(CloudFlags(**flags), Clock(), environment)

    async def main():
        async with cloud_factory(name)(context) as cloud:
            return cloud.name, cloud.known_groups()

    return asyncio.run(main())


def test_providers_are_connected_by_upstreams_names():
    """Names, environment and --nodes make a provider, without a request."""
    assert {"gce", "azure", "tencentcloud", "alicloud"} <= set(provider_names())
    tencent = {"REGION": "ap-guangzhou", "SECRET_ID": "i", "SECRET_KEY": "k"}
    assert connect("tencentcloud", tencent, nodes=("0:3:asg-1",)) == ("tencentcloud", ["asg-1"])
    alibaba = {"REGION_ID": "cn-hangzhou", "ACCESS_KEY_ID": "i", "ACCESS_KEY_SECRET": "k"}
    assert connect("alicloud", alibaba, nodes=("0:3:asg-1",)) == ("alicloud", ["asg-1"])


@pytest.mark.parametrize(
    ("name", "environment", "nodes", "text"),
    [
        ("tencentcloud", {"REGION": "ap-guangzhou"}, ("0:3:asg-1",), "SECRET_ID is not set"),
        ("tencentcloud", {"REGION": "r", "SECRET_ID": "i", "SECRET_KEY": "k"}, (), "set --nodes"),
        ("alicloud", {}, (), "set --nodes"),
        ("azure", {}, (), "resource group not set"),
    ],
)
def test_what_is_missing_is_named(name, environment, nodes, text):
    """A provider that cannot start says which variable or flag is missing."""
    with pytest.raises(CloudError, match=text):
        connect(name, environment, nodes=nodes)


def test_a_library_that_is_not_installed_is_named(monkeypatch):
    """Without its extra a provider says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "azure", None)
    monkeypatch.setitem(__import__("sys").modules, "azure.identity", None)
    environment = {
        "ARM_RESOURCE_GROUP": "g",
        "ARM_SUBSCRIPTION_ID": "s",
        "ARM_TENANT_ID": "t",
        "ARM_CLIENT_ID": "c",
        "ARM_CLIENT_SECRET": "x",
    }
    with pytest.raises(CloudNotFound, match="pip install 'azure-identity"):
        connect("azure", environment)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("mig:namePrefix=a,min=3,max=1", "minimum size 3 is greater than maximum size 1"),
        ("mig:namePrefix=a", "maximum size 0 must be at least 1"),
        ("mig:namePrefix=(a)\\1,max=1", "must be a valid RE2 regexp"),
        ("mig:namePrefix=a(,min=x,max=1", "must be a valid RE2 regexp"),
    ],
)
def test_refused_discovery_of_gce(spec, text):
    """The error names impossible bounds and patterns, and the pattern first."""
    with pytest.raises(CloudError, match=text):
        parse_gce(spec)

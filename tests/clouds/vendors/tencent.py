"""Tencent Cloud, as the tests of all vendors need it."""

from __future__ import annotations

from contextlib import contextmanager

from tests.clouds.fakes.tencent import KEYS, REGION, FakeTencent
from tests.clouds.vendors.vendor import Vendor

from kubetide.clouds.tencent.api import TencentApi, refusal
from kubetide.clouds.tencent.cloud import TencentCloud

TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"


async def keys():
    return KEYS


def tag(key, value):
    return {"Key": key, "Value": value, "ResourceType": None}


class Tencent(Vendor):
    """Auto Scaling groups."""

    web, system, workers, plain = "asg-web", "asg-system", "asg-workers", "asg-plain"
    refusal = staticmethod(refusal)
    refused_as = (("Throttled", "RequestLimitExceeded"), ("Permission", "UnauthorizedOperation"))
    order = "ModifyAutoScalingGroup"
    refused_orders = (
        ("ResourceInsufficient.AutoscalingGroupAboveMaxCapacity", "OutOfCapacity"),
        ("ResourcesSoldOut.SpecifiedInstanceType", "OutOfCapacity"),
        ("LimitExceeded.QuotaNotEnough", "Quota"),
        ("AuthFailure.UnauthorizedOperation", "Permission"),
        ("RequestLimitExceeded", "Throttled"),
    )
    at_rest = ("DescribeAutoScalingGroups", *["DescribeAutoScalingInstances"] * 2)

    types = "S5.4XLARGE32 S5.LARGE8"
    large = "auto-asg-workers-s5-4xlarge32-ap-guangzhou"
    candidates = tuple(
        f"auto-asg-workers-{kind}-ap-guangzhou-{zone}"
        for kind in ("s5-4xlarge32", "s5-large8")
        for zone in (3, 4)
    )
    meant, meant_zone = f"{large}-4", "ap-guangzhou-4"
    called = "an Auto Scaling group"
    mark = "tag kubetide.dev/create"
    has_source_of_its_own = True
    begins = "asg-made-"
    obstacles = (
        ({"group": {"AutoScalingGroupName": "tke-np-abc"}}, "TKE manages it"),
        ({"configuration": {"LaunchConfigurationName": "tke-np-abc"}}, "TKE manages it"),
        ({"group": {"SubnetIdSet": []}}, "no subnets"),
        ({"group": {"HostNameIndexSettings": {"Enabled": True}}}, "numbers the host names"),
        ({"configuration": {"UserData": None}}, "no user data"),
        ({"configuration": {"InstanceChargeType": "PREPAID"}}, "paid by the month"),
        ({"configuration": {"InstanceChargeType": "SPOTPAID"}}, "maximum price"),
        ({"configuration": {"HpcClusterId": "hpc-1"}}, "computing cluster"),
    )
    useless = (
        ("S9.HUGE", "is not known; correct it"),
        ("GN7.2XLARGE32", "is left out: it has GPUs, which a template does not show"),
    )
    pattern_at_rest = (
        "DescribeAutoScalingGroups",
        "DescribeAutoScalingGroups",
        "DescribeAutoScalingInstances",
    )

    def make_fake(self, page):
        return FakeTencent(self.fleet, self.clock, page)

    def provider(self, rest, address, nodes):
        api = TencentApi(rest, self.clock, keys, REGION, endpoint=lambda _service: f"{address}/")
        return TencentCloud(api, nodes, REGION, self.clock)

    def make_pattern(self, types, *, group=None, configuration=None):
        """Make a group over two zones a pattern whose machines join by user data, as the API describes it."""
        self.fake.groups[self.workers] = {
            "AutoScalingGroupName": "workers",
            "LaunchConfigurationId": "asc-workers",
            "DefaultCooldown": 60,
            "ForwardLoadBalancerSet": [],
            "HostNameIndexSettings": None,
            "InstanceAllocationPolicy": "LAUNCH_CONFIGURATION",
            "MaxSize": 20,
            "ProjectId": 0,
            "ServiceSettings": {"ReplaceMonitorUnhealthy": False, "ScalingMode": None},
            "SpotMixedAllocationPolicy": None,
            "SubnetIdSet": ["subnet-3", "subnet-4"],
            "TerminationPolicySet": ["NEWEST_INSTANCE"],
            "VpcId": "vpc-1",
            "ZoneSet": [],
            "Tags": [
                tag("kubetide.dev/create", types),
                tag("cluster", "shop"),
                tag("tencentcloud:pool", "blue"),
                tag(f"{TEMPLATE}label/team", "shop"),
                tag(f"{TEMPLATE}resources/ephemeral-storage", "100Gi"),
                tag(f"{TEMPLATE}resources/nvidia.com/gpu", "1"),
            ],
            **(group or {}),
        }
        self.fake.configurations["asc-workers"] = {
            "LaunchConfigurationName": "workers",
            "CamRoleName": "nodes",
            "DataDisks": [],
            "ImageFamily": "",
            "ImageId": "img-1",
            "InstanceChargeType": "POSTPAID_BY_HOUR",
            "InstanceMarketOptions": None,
            "InstanceType": "S5.MEDIUM4",
            "InstanceTypes": ["S5.MEDIUM4"],
            "LoginSettings": {"KeyIds": ["skey-1"]},
            "ProjectId": 0,
            "SecurityGroupIds": ["sg-1"],
            "SystemDisk": {"DiskType": "CLOUD_BSSD", "DiskSize": 100, "DiskId": None},
            "UserData": "am9pbg==",
            "Tags": [],
            **(configuration or {}),
        }

    def lose_mark(self):
        self.fake.groups[self.workers]["Tags"] = []

    def there(self):
        return set(self.fleet.groups), set(self.fake.configurations)

    def created(self, group_id):
        groups = self.fake.groups.items()
        return next(asg for asg, one in groups if one["AutoScalingGroupName"] == group_id)

    def hide(self, _group_id):
        self.fake.knows_tags = False

    @contextmanager
    def taken(self, group_id):
        self.fake.groups[self.plain] = {"AutoScalingGroupName": group_id}
        yield
        del self.fake.groups[self.plain]

    def refuse_order(self, code):
        self.fake.errors = [(self.order, code)]

    def throttle(self):
        self.fake.errors = [("DescribeAutoScalingInstances", "RequestLimitExceeded")]

    def refused_creations(self):
        self.fake.errors = [("CreateAutoScalingGroup", "UnauthorizedOperation")]
        yield "UnauthorizedOperation", "Permission"

    def node_id(self, _group, machine):
        return f"qcloud:///100003/ins-{machine}"

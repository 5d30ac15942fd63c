"""Alibaba Cloud, as the tests of all vendors need it."""

from __future__ import annotations

from contextlib import contextmanager

from tests.clouds.fakes.alibaba import KEYS, REGION, FakeAlibaba
from tests.clouds.vendors.vendor import Vendor

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud


async def keys():
    return KEYS


class Alibaba(Vendor):
    """Scaling groups; ``desired`` as of the fake."""

    web, system, workers, plain = "asg-web", "asg-system", "asg-workers", "asg-plain"
    refusal = staticmethod(refusal)
    refused_as = (("Throttled", "Throttling.User"), ("Permission", "Forbidden.RAM"))
    order = "ScaleWithAdjustment"
    refused_orders = (
        ("OperationDenied.NoStock", "OutOfCapacity"),
        ("InvalidParameter.NotEnoughStock", "OutOfCapacity"),
        ("QuotaExceed.ElasticQuota", "Quota"),
        ("Forbidden.RAM", "Permission"),
        ("Throttling.User", "Throttled"),
    )
    at_rest = ("DescribeScalingGroups", *["DescribeScalingInstances"] * 2)

    types = "ecs.g6.4xlarge ecs.c6.large"
    large = f"auto-asg-workers-ecs-g6-4xlarge-{REGION}"
    candidates = tuple(
        f"auto-asg-workers-ecs-{kind}-{REGION}-{zone}" for kind in ("c6-large", "g6-4xlarge") for zone in "hi"
    )
    meant, meant_zone = f"{large}-i", f"{REGION}-i"
    called = "a scaling group"
    mark = "tag kubetide.dev/create of the scaling configuration"
    has_source_of_its_own = True
    begins = "asg-made"
    obstacles = (
        ({"tags": {"ack.alibabacloud.com/nodepool-id": "np1"}}, "ACK manages it"),
        ({"group": {"GroupType": "ECI"}}, "not of ECS instances"),
        ({"group": {"VSwitchIds": None}}, "no vSwitches"),
        ({"configuration": {"UserData": ""}}, "no user data"),
        ({"configuration": {"HostName": "node"}}, "names its machines' hosts"),
        ({"configuration": {"SpotStrategy": "SpotWithPriceLimit"}}, "price limit"),
        ({"configuration": {"DedicatedHostId": "dh-1"}}, "dedicated hosts"),
        (
            {"configuration": {"NetworkInterfaces": {"NetworkInterface": [{"InstanceType": "Primary"}]}}},
            "network interfaces",
        ),
    )
    useless = (
        ("ecs.huge", "is not known; correct it"),
        ("ecs.g8y.large", "is left out: it is ARM, and the pattern's machines are X86"),
    )
    pattern_at_rest = ("DescribeScalingGroups", "DescribeScalingGroups", "DescribeScalingInstances")

    def make_fake(self, _page, *, desired=True):
        return FakeAlibaba(self.fleet, self.clock, desired=desired)

    def provider(self, rest, address, nodes):
        seed = len(self.fake.nonces)
        api = AlibabaApi(rest, self.clock, keys, REGION, endpoint=lambda _host: f"{address}/", seed=seed)
        return AlibabaCloud(api, nodes, REGION, self.clock)

    def make_pattern(self, types, *, group=None, configuration=None, tags=None):
        """Make a group over two zones a pattern whose machines join by user data, as the API describes it."""
        self.fake.groups[self.workers] = {
            "ScalingGroupName": "workers",
            "ActiveScalingConfigurationId": "asc-workers",
            "DefaultCooldown": 0,
            "GroupType": "ECS",
            "HealthCheckType": "ECS",
            "LoadBalancerIds": {"LoadBalancerId": ["lb-1"]},
            "MaxInstanceLifetime": 0,
            "MaxSize": 20,
            "MinSize": 0,
            "MultiAZPolicy": "BALANCE",
            "OnDemandBaseCapacity": 0,
            "RemovalPolicies": {"RemovalPolicy": ["NewestInstance"]},
            "ScalingPolicy": "release",
            "VServerGroups": {
                "VServerGroup": [
                    {
                        "LoadBalancerId": "lb-2",
                        "VServerGroupAttributes": {
                            "VServerGroupAttribute": [{"VServerGroupId": "rsp-1", "Port": 80, "Weight": 100}]
                        },
                    }
                ]
            },
            "VSwitchIds": {"VSwitchId": ["vsw-h", "vsw-i"]},
            **(group or {}),
        }
        given = {"kubetide.dev/create": types, "team": "shop", **(tags or {})}
        self.fake.configurations["asc-workers"] = {
            "ScalingConfigurationName": "workers",
            "DataDisks": {"DataDisk": [{"Size": 200, "Category": "cloud_essd", "DeleteWithInstance": True}]},
            "HostName": "",
            "ImageId": "img-1",
            "InstanceType": "ecs.g6.large",
            "InternetMaxBandwidthOut": 0,
            "KeyPairName": "shop",
            "LoadBalancerWeight": 50,
            "SecurityGroupId": "sg-1",
            "SecurityGroupIds": {"SecurityGroupId": []},
            "SpotDuration": 1,
            "SpotStrategy": "NoSpot",
            "SystemDiskCategory": "cloud_essd",
            "SystemDiskSize": 120,
            "Tags": {"Tag": [{"Key": key, "Value": value} for key, value in given.items()]},
            "UserData": "am9pbg==",
            **(configuration or {}),
        }

    def lose_mark(self):
        self.fake.configurations["asc-workers"]["Tags"] = {"Tag": []}

    def there(self):
        return set(self.fleet.groups), set(self.fake.configurations)

    def created(self, group_id):
        groups = self.fake.groups.items()
        return next(asg for asg, one in groups if one["ScalingGroupName"] == group_id)

    def hide(self, _group_id):
        self.fake.knows_tags = False

    @contextmanager
    def taken(self, group_id):
        self.fake.groups[self.plain] = {"ScalingGroupName": group_id}
        yield
        del self.fake.groups[self.plain]

    def refuse_order(self, code):
        self.fake.errors = [(self.order, code, 400)]

    def throttle(self):
        self.fake.errors = [("DescribeScalingGroups", "Throttling", 400)]

    def refused_creations(self):
        for action in ("CreateScalingGroup", "CreateScalingConfiguration", "EnableScalingGroup"):
            self.fake.errors = [(action, "Forbidden.RAM", 403)]
            yield "Forbidden.RAM", "Permission"

    def node_id(self, _group, machine):
        return f"{REGION}.i-{machine}"

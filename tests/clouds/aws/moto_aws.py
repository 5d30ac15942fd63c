"""AWS as a server in the same process (moto), behind the real client, with what moto lacks laid over its answers.

moto's instances are there at once and its groups have no activities: ``SlowAws`` hides instances until they have
booted, refuses them while there is a stock-out, and reports it in activities as AWS does.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.request import Request, urlopen

import boto3
from moto.server import ThreadedMotoServer

from kubetide.clouds.aws.client import BotoClient
from kubetide.clouds.aws.config import AwsConfig, Endpoint
from kubetide.clouds.aws.errors import api_error
from kubetide.units.time import after, format_rfc3339, seconds

REGION = "eu-west-1"
STOCK_OUT = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
    "m5.large capacity in the Availability Zone you requested (eu-west-1a). Launching EC2 instance failed."
)
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class MotoServer:
    """A server, the provider's own client of it, and clients that create its objects."""

    def __init__(self, url):
        names = ("autoscaling", "ec2", "eks")
        self.url = url
        self.client = BotoClient(
            AwsConfig(REGION, 3, tuple(Endpoint(one, REGION, url, REGION) for one in names))
        )
        session = boto3.session.Session(region_name=REGION)
        self.ec2, self.asg = (session.client(one, endpoint_url=url) for one in ("ec2", "autoscaling"))
        self.image = self.ec2.describe_images()["Images"][0]["ImageId"]

    def close(self):
        self.client.close()
        self.ec2.close()
        self.asg.close()


@contextmanager
def moto_server():
    """Serve AWS on a free port; nothing is there yet, whatever servers of this process had before."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    with urlopen(Request(f"{url}/moto-api/reset", method="POST"), timeout=60):
        pass
    aws = MotoServer(url)
    try:
        yield aws
    finally:
        aws.close()
        server.stop()


def make_group(server, name, *, size=0, max_size=3, tags=(), types=("m5.large",)):
    """Make an Auto Scaling group of a launch template, mixed when it has several types."""
    ec2, asg, image = server.ec2, server.asg, server.image
    ec2.create_launch_template(
        LaunchTemplateName=f"lt-{name}", LaunchTemplateData={"ImageId": image, "InstanceType": types[0]}
    )
    template = {"LaunchTemplateName": f"lt-{name}", "Version": "$Latest"}
    launch = {"LaunchTemplate": template}
    if len(types) > 1:
        overrides = [{"InstanceType": one} for one in types]
        launch = {
            "MixedInstancesPolicy": {
                "LaunchTemplate": {"LaunchTemplateSpecification": template, "Overrides": overrides},
                "InstancesDistribution": {
                    "OnDemandBaseCapacity": 0,
                    "OnDemandPercentageAboveBaseCapacity": 25,
                },
            }
        }
    asg.create_auto_scaling_group(
        AutoScalingGroupName=name,
        MinSize=0,
        MaxSize=max_size,
        DesiredCapacity=size,
        AvailabilityZones=[f"{REGION}a"],
        Tags=[
            {"Key": key, "Value": value, "PropagateAtLaunch": True, "ResourceId": name} for key, value in tags
        ],
        **launch,
    )


@dataclass
class SlowAws:
    """A caller over moto: instances take time, may be out of stock, and calls may be throttled.

    Attributes:
        inner: The client of moto.
        clock: The time.
        boot_s: Seconds from the first sight of an instance to its appearance.
        stock_out: Groups whose new machines cannot be had.
        refuse: Error code by operation; such calls fail.
        untagged: Groups that are not found by their tags yet.
        calls: The requested operations, in order.
        ended: Each instance that was terminated, and whether its group got smaller by it.
    """

    inner: BotoClient
    clock: object
    boot_s: float = 0
    stock_out: set = field(default_factory=set)
    refuse: dict = field(default_factory=dict)
    untagged: set = field(default_factory=set)
    calls: list = field(default_factory=list)
    ended: list = field(default_factory=list)
    first_seen: dict = field(default_factory=dict)
    never: set = field(default_factory=set)
    failed_at: dict = field(default_factory=dict)

    async def __call__(self, operation, parameters):
        self.calls.append(operation)
        if operation in self.refuse:
            raise api_error(operation, self.refuse[operation], "injected")
        if operation == "DescribeScalingActivities":
            return {"Activities": self._activities(parameters["AutoScalingGroupName"])}
        if operation == "GetInstanceTypesFromInstanceRequirements":
            return {"InstanceTypes": [{"InstanceType": "m5.large"}, {"InstanceType": "m5.xlarge"}]}
        answer = await self.inner(operation, parameters)
        if operation == "TerminateInstanceInAutoScalingGroup":
            self.ended.append((parameters["InstanceId"], parameters["ShouldDecrementDesiredCapacity"]))
        if operation == "DescribeAutoScalingGroups":
            answer = copy.deepcopy(answer)
            if "Filters" in parameters:
                answer["AutoScalingGroups"] = [
                    one
                    for one in answer["AutoScalingGroups"]
                    if one["AutoScalingGroupName"] not in self.untagged
                ]
            for group in answer["AutoScalingGroups"]:
                group["Instances"] = [one for one in group["Instances"] if self._is_there(group, one)]
        return answer

    def _is_there(self, group, instance):
        name, now = instance["InstanceId"], self.clock.now()
        if name not in self.first_seen:
            self.first_seen[name] = now
            if group["AutoScalingGroupName"] in self.stock_out:
                self.never.add(name)
                self.failed_at[group["AutoScalingGroupName"]] = now
        return name not in self.never and now >= after(self.first_seen[name], seconds(self.boot_s))

    def _activities(self, group):
        if group not in self.failed_at:
            return []
        start = format_rfc3339(self.failed_at[group])
        return [{"StatusCode": "Failed", "StatusMessage": STOCK_OUT, "StartTime": start}]

"""The APIs of Alibaba Cloud that the provider calls, and their hosts."""

from __future__ import annotations

from typing import NamedTuple


class Service(NamedTuple):
    """One of the APIs."""

    name: str
    version: str


SCALING = Service("ess", "2014-08-28")
MACHINES = Service("ecs", "2014-05-26")
NETWORKS = Service("vpc", "2016-04-28")


_CENTRAL = frozenset(
    {
        "ap-southeast-1",
        "cn-beijing",
        "cn-beijing-finance-1",
        "cn-hangzhou",
        "cn-hangzhou-finance",
        "cn-hongkong",
        "cn-nanjing",
        "cn-north-2-gov-1",
        "cn-qingdao",
        "cn-shanghai",
        "cn-shanghai-finance-1",
        "cn-shenzhen",
        "cn-shenzhen-finance-1",
        "us-east-1",
        "us-west-1",
    }
)
"""The regions whose scaling groups are asked for at one host, without the region in its name.

Source: Alibaba Cloud, "Endpoints" of Auto Scaling, and the endpoints of its SDK for this API.
"""


def host_of(service: Service, region: str) -> str:
    """Return the public host of a service in a region."""
    is_central = service == SCALING and region in _CENTRAL
    return f"{service.name}.aliyuncs.com" if is_central else f"{service.name}.{region}.aliyuncs.com"

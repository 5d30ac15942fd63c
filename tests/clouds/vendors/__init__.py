"""The vendors whose protocols are played by fakes, by the name of their package."""

import pytest
from tests.clouds.faults import Faulty
from tests.clouds.vendors.alibaba import Alibaba
from tests.clouds.vendors.aws import Aws
from tests.clouds.vendors.azure import Azure
from tests.clouds.vendors.gce import Gce
from tests.clouds.vendors.tencent import Tencent

__all__ = ["ALL", "VENDORS", "Alibaba", "Aws", "Azure", "Gce", "Tencent", "spoiled"]


def external(**how):
    """Return a provider in another process; skip the test where the extra that it needs is not installed."""
    module = pytest.importorskip("tests.clouds.vendors.externalgrpc", reason="protobuf is an extra")
    return module.ExternalGrpc(**how)


VENDORS = {"alibaba": Alibaba, "azure": Azure, "gce": Gce, "tencent": Tencent}
ALL = VENDORS | {"aws": Aws, "externalgrpc": external}
"""Those too that are played by a fake of their port of calls, as far as faults need it."""


def spoiled(vendor, **how):
    """Return a vendor with two groups, its provider, and what spoils answers to it."""
    here = ALL[vendor](**how).with_groups()
    here.send = Faulty(here.send, here.clock, most=100)
    return here, here.connect(), here.send

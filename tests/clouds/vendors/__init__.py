"""The vendors whose protocols are played by fakes, by the name of their package."""

from tests.clouds.vendors.alibaba import Alibaba
from tests.clouds.vendors.azure import Azure
from tests.clouds.vendors.gce import Gce
from tests.clouds.vendors.tencent import Tencent

__all__ = ["VENDORS", "Alibaba", "Azure", "Gce", "Tencent"]

VENDORS = {"alibaba": Alibaba, "azure": Azure, "gce": Gce, "tencent": Tencent}

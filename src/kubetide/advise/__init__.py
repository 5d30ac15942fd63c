"""What requests cost and what they could be: a report from usage alone, for any cluster; it only reads."""

from kubetide.advise.prices import PriceError, Prices, read_prices
from kubetide.advise.report import Report, Row, report
from kubetide.advise.usage import UsageLog
from kubetide.advise.workloads import Workloads

__all__ = ["PriceError", "Prices", "Report", "Row", "UsageLog", "Workloads", "read_prices", "report"]

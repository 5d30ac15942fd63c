"""A report of what requests cost and could be, from usage alone, for any cluster; read-only."""

from kubetide.advise.prices import PriceError, Prices, read_prices
from kubetide.advise.report import Report, Row, report
from kubetide.advise.usage import UsageLog
from kubetide.advise.workloads import Workloads

__all__ = ["PriceError", "Prices", "Report", "Row", "UsageLog", "Workloads", "read_prices", "report"]

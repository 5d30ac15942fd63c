"""Findings about a cluster: what keeps it from scaling well, why that matters, and the fix."""

from kubetide.doctor.diagnose import diagnose
from kubetide.doctor.finding import SEVERITIES, Finding, Severity
from kubetide.doctor.snapshot import GroupStatus, Server, Snapshot

__all__ = ["SEVERITIES", "Finding", "GroupStatus", "Server", "Severity", "Snapshot", "diagnose"]

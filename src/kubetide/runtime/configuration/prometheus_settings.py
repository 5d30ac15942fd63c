"""Settings of the connection to Prometheus."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.units.time import Duration, minutes

SECRETS: Final = frozenset({"prometheus-password", "prometheus-bearer-token"})
"""Settings that are shown nowhere."""


class PrometheusSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The address of Prometheus, and the credentials for it.

    Attributes:
        prometheus_url: Where External metrics whose selector says so come from, and with
            ``--vpa-storage=prometheus`` the history of usage; empty for nowhere, and for that history for upstream's
            default.
        prometheus_token_file: A bearer token to show it, or the token itself in ``prometheus_bearer_token``; or
            ``prometheus_user`` with ``prometheus_password_file`` or ``prometheus_password``.
        prometheus_ca_file: Authorities to trust, PEM; empty for the system's.
        prometheus_insecure: Whether any certificate is trusted.
        prometheus_query_timeout: Within which an answer about history must be there in full.
    """

    prometheus_url: str = ""
    prometheus_token_file: str = ""
    prometheus_bearer_token: str = ""
    prometheus_user: str = ""
    prometheus_password_file: str = ""
    prometheus_password: str = ""
    prometheus_ca_file: str = ""
    prometheus_insecure: bool = False
    prometheus_query_timeout: Duration = minutes(5)

"""The connection to Prometheus, from the settings of a run."""

from __future__ import annotations

from pathlib import Path

from kubetide.cluster import Connection, PemFiles
from kubetide.cluster.metric_ports.prometheus import BasicAuth
from kubetide.runtime.configuration.config import ConfigError
from kubetide.runtime.configuration.prometheus_settings import PrometheusSettings


def prometheus_access(run: PrometheusSettings, otherwise: str = "") -> tuple[Connection, BasicAuth | None]:
    """Return the address of Prometheus and the credentials for it.

    Args:
        otherwise: The URL where no setting says one.

    Raises: ConfigError that names the setting and the fix.
    """
    url = run.prometheus_url or otherwise
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f'prometheus-url: "{url}" is no URL; write for example http://prometheus:9090')
    if run.prometheus_password and run.prometheus_password_file:
        raise ConfigError(
            "prometheus-password and prometheus-password-file exclude each other; set one of them"
        )
    if run.prometheus_bearer_token and run.prometheus_token_file:
        raise ConfigError(
            "prometheus-bearer-token and prometheus-token-file exclude each other; set one of them"
        )
    if bool(run.prometheus_user) != bool(run.prometheus_password_file or run.prometheus_password):
        raise ConfigError(
            "prometheus-user and prometheus-password-file (or prometheus-password) belong together; set both or neither"
        )
    if run.prometheus_user and (run.prometheus_token_file or run.prometheus_bearer_token):
        raise ConfigError("prometheus-token-file and prometheus-user exclude each other; set one of them")
    authority = ""
    if run.prometheus_ca_file:
        try:
            authority = Path(run.prometheus_ca_file).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"prometheus-ca-file: {run.prometheus_ca_file} cannot be read: {error}"
            ) from error
    connection = Connection(
        url,
        token=run.prometheus_bearer_token,
        token_file=Path(run.prometheus_token_file) if run.prometheus_token_file else None,
        authority=authority,
        files=PemFiles(authority=Path(run.prometheus_ca_file) if run.prometheus_ca_file else None),
        verify=not run.prometheus_insecure,
    )
    return connection, _basic(run)


def _basic(run: PrometheusSettings) -> BasicAuth | None:
    if not run.prometheus_user:
        return None
    file = Path(run.prometheus_password_file) if run.prometheus_password_file else None
    return BasicAuth(run.prometheus_user, file, run.prometheus_password)

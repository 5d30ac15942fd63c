"""How to reach Prometheus, from the settings of a run."""

from __future__ import annotations

from pathlib import Path

from kubetide.cluster import Connection, PemFiles
from kubetide.cluster.prometheus import BasicAuth
from kubetide.runtime.config import ConfigError, RunSettings


def prometheus_access(run: RunSettings) -> tuple[Connection, BasicAuth | None]:
    """Return where Prometheus is and what to show it.

    Raises: ConfigError that names the setting and the fix.
    """
    if not run.prometheus_url.startswith(("http://", "https://")):
        raise ConfigError(
            f'prometheus-url: "{run.prometheus_url}" is no URL; write for example http://prometheus:9090'
        )
    if bool(run.prometheus_user) != bool(run.prometheus_password_file):
        raise ConfigError("prometheus-user and prometheus-password-file belong together; set both or neither")
    if run.prometheus_user and run.prometheus_token_file:
        raise ConfigError("prometheus-token-file and prometheus-user exclude each other; set one of them")
    authority = ""
    if run.prometheus_ca_file:
        try:
            authority = Path(run.prometheus_ca_file).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"prometheus-ca-file: {run.prometheus_ca_file} cannot be read: {error}"
            ) from error
    token = Path(run.prometheus_token_file) if run.prometheus_token_file else None
    files = PemFiles(authority=Path(run.prometheus_ca_file) if run.prometheus_ca_file else None)
    connection = Connection(run.prometheus_url, token_file=token, authority=authority, files=files)
    basic = (
        BasicAuth(run.prometheus_user, Path(run.prometheus_password_file)) if run.prometheus_user else None
    )
    return connection, basic

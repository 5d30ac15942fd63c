"""Where the server is: the order in which configuration is looked for.

Source: client-go v1.36 (clientcmd: ClientConfigLoadingRules, DeferredLoadingClientConfig).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kubetide.cluster.access.connection import ConfigError, Connection
from kubetide.cluster.access.incluster import SERVICE_ACCOUNT, in_cluster, why_no_account
from kubetide.cluster.access.kubeconfig import read_kubeconfigs
from kubetide.serving.proxy import ProxyError, proxy_for


def find_connection(
    environ: Mapping[str, str],
    *,
    home: Path,
    kubeconfig: str = "",
    context: str = "",
    service_account: Path = SERVICE_ACCOUNT,
    only_own_pod: bool = False,
) -> Connection:
    """Return the connection of ``kubeconfig``; else of KUBECONFIG's files; else of ``~/.kube/config``; else of this pod.

    Args:
        environ: The process's environment: KUBECONFIG, KUBERNETES_SERVICE_*, HTTPS_PROXY, NO_PROXY.
        home: The user's folder.
        kubeconfig: A file that must be there; the environment's are then not looked at.
        context: A context to use in place of the current one.
        service_account: Where a pod finds its service account.
        only_own_pod: Without ``kubeconfig`` only this pod's account is looked at.

    Raises: ConfigError.
    """
    if only_own_pod and not kubeconfig:
        found = in_cluster(environ, service_account)
    else:
        found = _configured(environ, home, kubeconfig, context, service_account)
    if found.proxy:
        return found
    try:
        return replace(found, proxy=proxy_for(found.url, environ))
    except ProxyError as error:
        raise ConfigError(str(error)) from error


def _configured(
    environ: Mapping[str, str], home: Path, kubeconfig: str, context: str, service_account: Path
) -> Connection:
    if kubeconfig:
        return read_kubeconfigs([Path(kubeconfig)]).connection(context)
    named = environ.get("KUBECONFIG", "")
    paths = [Path(path) for path in named.split(os.pathsep) if path] or [home / ".kube" / "config"]
    # Files that are not there are passed over, a second mention too; all other trouble is an error.
    there = [path for path in dict.fromkeys(paths) if path.exists()]
    config = read_kubeconfigs(there)
    if not config.is_empty:
        return config.connection(context)
    missing = why_no_account(environ, service_account)
    if not missing:
        return in_cluster(environ, service_account)
    looked = ", ".join(str(path) for path in paths)
    raise ConfigError(
        "invalid configuration: no configuration has been provided: "
        f"{looked}: no kubeconfig there, and {missing}; name a file with --kubeconfig or KUBECONFIG"
    )

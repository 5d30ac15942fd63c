"""Settings of the admission controller: upstream's flags with upstream's names and defaults.

Source: vertical-pod-autoscaler 1.8.1, admission-controller flags.
"""

from __future__ import annotations

import msgspec

from kubetide.units.quantity import Quantity
from kubetide.units.time import Duration, seconds
from kubetide.vertical.gates import FeatureGates


class Settings(msgspec.Struct, frozen=True):
    """Each field is the flag of the same name.

    Attributes:
        client_ca_file, tls_cert_file, tls_private_key: PEM files; where all are missing, certificates are made. The
            first one is read only to register the webhook.
        reload_cert: Read the files again when they change, and write a changed authority into the webhook.
        tls_ciphers: Names of cipher suites, separated by commas or colons; empty for the library's.
        min_tls_version: ``tls1_2`` or ``tls1_3``; empty is the former.
        port, address: Where reviews are answered (HTTPS), and where metrics are.
        webhook_service, webhook_address, webhook_port, register_by_url: How the API server reaches the webhook; address
            and port are those of the URL.
        webhook_timeout_seconds: 1 to 30.
        webhook_failure_policy_fail: Whether pods are refused while the webhook does not answer.
        register_webhook: Whether the webhook configuration is written.
        webhook_labels: ``key:value`` pairs of it, separated by commas; none of them holds if one cannot be read.
        status_lease_name, status_lease_namespace, status_lease_update_interval: The lease that shows the updater
            that pods are answered for.
        max_allowed_cpu_boost: Cap of a boosted CPU request, ``0`` for none.
        vpa_object_namespace: Only VPA objects of this namespace count; empty for all.
        ignored_vpa_object_namespaces: Pods and VPA objects of these are left alone.
        kube_api_qps, kube_api_burst: Limits of requests to the API server.
    """

    client_ca_file: str = "/etc/tls-certs/caCert.pem"
    tls_cert_file: str = "/etc/tls-certs/serverCert.pem"
    tls_private_key: str = "/etc/tls-certs/serverKey.pem"
    reload_cert: bool = False
    tls_ciphers: str = ""
    min_tls_version: str = "tls1_2"
    port: int = 8000
    address: str = ":8944"
    webhook_service: str = "vpa-webhook"
    webhook_address: str = ""
    webhook_port: str = ""
    register_by_url: bool = False
    webhook_timeout_seconds: int = 30
    webhook_failure_policy_fail: bool = False
    register_webhook: bool = True
    webhook_labels: str = ""
    status_lease_name: str = "vpa-admission-controller"
    status_lease_namespace: str = ""
    status_lease_update_interval: Duration = seconds(10)
    max_allowed_cpu_boost: str = "0"
    vpa_object_namespace: str = ""
    ignored_vpa_object_namespaces: tuple[str, ...] = ()
    kube_api_qps: float = 50.0
    kube_api_burst: float = 100.0
    gates: FeatureGates = FeatureGates()

    def __post_init__(self) -> None:
        if self.vpa_object_namespace and self.ignored_vpa_object_namespaces:
            raise ValueError(
                "vpa-object-namespace and ignored-vpa-object-namespaces exclude each other: set one of them"
            )
        if self.status_lease_update_interval <= 0:
            raise ValueError("status-lease-update-interval must be greater than 0")
        if self.min_tls_version not in {"", "tls1_2", "tls1_3"}:
            raise ValueError(f"min-tls-version must be tls1_2 or tls1_3, not {self.min_tls_version!r}")
        Quantity.parse(self.max_allowed_cpu_boost)

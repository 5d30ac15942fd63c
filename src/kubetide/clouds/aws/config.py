"""What the AWS provider reads: its ``--cloud-config`` file and upstream's environment variables.

Source: cluster-autoscaler (Aug 2026), AWS provider: ``[ServiceOverride "N"]`` sections of the file, ``AWS_REGION``,
``AWS_MAX_ATTEMPTS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubetide.clouds.common.ini import CloudConfigError, Entry, read_ini
from kubetide.units.numbers import NumberError, parse_integer

_REQUIRED: Final = ("service", "region", "url", "signingregion")
_OPTIONAL: Final = ("signingmethod", "signingname")
_GLOBAL: Final = frozenset(
    {
        "zone",
        "vpc",
        "subnetid",
        "routetableid",
        "rolearn",
        "kubernetesclustertag",
        "kubernetesclusterid",
        "disablesecuritygroupingress",
        "elbsecuritygroup",
        "disablestrictzonecheck",
        "nodeipfamilies",
        "clusterserviceloadbalancerhealthprobemode",
        "clusterserviceloadbalancerhealthprobeport",
    }
)
"""Keys of the AWS cloud controller, which do nothing here."""
_DEFAULT_ATTEMPTS: Final = 3


class Endpoint(NamedTuple):
    """Where to find a service of a region, and how its requests are signed."""

    service: str
    region: str
    url: str
    signing_region: str


class AwsConfig(NamedTuple):
    """What the file and the environment say; an empty region leaves the choice to the SDK (files, metadata)."""

    region: str
    attempts: int
    endpoints: tuple[Endpoint, ...] = ()

    def endpoint(self, service: str, region: str) -> Endpoint | None:
        """Return the endpoint that takes the place of a service's own."""
        return next((one for one in self.endpoints if (one.service, one.region) == (service, region)), None)


def aws_config(text: str, environment: Mapping[str, str]) -> AwsConfig:
    """Return the configuration; ``text`` is the file, empty without one. Raises CloudConfigError."""
    attempts = environment.get("AWS_MAX_ATTEMPTS", "")
    try:
        count = parse_integer(attempts) if attempts else _DEFAULT_ATTEMPTS
    except NumberError as error:
        raise CloudConfigError(f"AWS_MAX_ATTEMPTS: {error}; give a whole number, such as 3") from error
    return AwsConfig(environment.get("AWS_REGION", ""), count, _endpoints(text))


def _endpoints(text: str) -> tuple[Endpoint, ...]:
    try:
        entries = read_ini(text)
    except CloudConfigError as error:
        raise CloudConfigError(f"cloud-config: {error}") from error
    sections: dict[str, dict[str, str]] = {}
    for entry in entries:
        if entry.section == "serviceoverride" and entry.part is not None:
            _take(sections.setdefault(entry.part, {}), entry)
        elif entry.section != "global" or (entry.key and entry.key not in _GLOBAL):
            what = f"key {entry.key} in section {entry.section}" if entry.key else f"section {entry.section}"
            raise CloudConfigError(f"cloud-config line {entry.line}: unknown {what}; remove it")
    endpoints: dict[tuple[str, str], Endpoint] = {}
    for name, held in sections.items():
        for key in _REQUIRED:
            if not held.get(key, "").strip():
                raise CloudConfigError(f'cloud-config: section ServiceOverride "{name}" needs {key}')
        if not held["url"].strip().startswith(("http://", "https://")):
            raise CloudConfigError(
                f'cloud-config: section ServiceOverride "{name}": url {held["url"].strip()} is not of the form https://HOST'
            )
        one = Endpoint(
            held["service"].strip(),
            held["region"].strip(),
            held["url"].strip(),
            held["signingregion"].strip(),
        )
        if (one.service, one.region) in endpoints:
            raise CloudConfigError(
                f'cloud-config: section ServiceOverride "{name}" repeats service {one.service} of region {one.region}'
            )
        endpoints[one.service, one.region] = one
    return tuple(endpoints.values())


def _take(held: dict[str, str], entry: Entry) -> None:
    if not entry.key:
        return
    if entry.key not in (*_REQUIRED, *_OPTIONAL):
        raise CloudConfigError(f"cloud-config line {entry.line}: unknown key {entry.key}; remove it")
    held[entry.key] = entry.value or ""

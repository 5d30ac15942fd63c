"""Who asks, and where: the environment alone. The file of ``--cloud-config`` must not have a section.

Source: cluster-autoscaler cloudprovider/alicloud, cloud configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from kubetide.clouds.common.ini import CloudConfigError, read_ini
from kubetide.ports.errors import CloudError

Auth = Literal["access key", "rrsa", "metadata service"]


class AlibabaConfig(NamedTuple):
    """How requests are signed: an access key, a role by an OIDC token (RRSA), or the role of the machine.

    Empty where the environment does not say it; then region and role come from the metadata service.
    """

    auth: Auth = "metadata service"
    region: str = ""
    access_key_id: str = ""
    access_key_secret: str = ""
    oidc_provider_arn: str = ""
    oidc_token_file: str = ""
    role_arn: str = ""
    session: str = ""


def check_file(text: str) -> None:
    """Raise CloudError for a configuration file that says anything: upstream refuses every section."""
    try:
        entries = read_ini(text)
    except CloudConfigError as error:
        raise CloudError(f"cloud-config: {error}; leave the file out and set the environment") from error
    if entries:
        raise CloudError(
            f"cloud-config: section [{entries[0].section}] is not known; set the environment instead"
        )


def read_environment(environment: Mapping[str, str]) -> AlibabaConfig:
    """Return the configuration of these variables; of two names of one thing the newer wins."""

    def first(*names: str) -> str:
        return next((environment[name] for name in names if environment.get(name)), "")

    found = AlibabaConfig(
        region=first("REGION_ID"),
        access_key_id=first("ACCESS_KEY_ID"),
        access_key_secret=first("ACCESS_KEY_SECRET"),
        oidc_provider_arn=first("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "ALICLOUD_OIDC_PROVIDER_ARN"),
        oidc_token_file=first("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "ALICLOUD_OIDC_TOKEN_FILE_PATH"),
        role_arn=first("ALIBABA_CLOUD_ROLE_ARN", "ALICLOUD_ROLE_ARN"),
        session=first("ALIBABA_CLOUD_SESSION_NAME", "ALICLOUD_SESSION_NAME"),
    )
    if found.region and found.access_key_id and found.access_key_secret:
        return found._replace(auth="access key")
    role = (found.oidc_provider_arn, found.oidc_token_file, found.role_arn, found.session)
    if found.region and all(role):
        return found._replace(auth="rrsa")
    return found


def advice(config: AlibabaConfig) -> str:
    """Return what the environment lacks for another way than the role of the machine."""
    key = {
        "REGION_ID": config.region,
        "ACCESS_KEY_ID": config.access_key_id,
        "ACCESS_KEY_SECRET": config.access_key_secret,
    }
    rrsa = {
        "REGION_ID": config.region,
        "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": config.oidc_provider_arn,
        "ALIBABA_CLOUD_OIDC_TOKEN_FILE": config.oidc_token_file,
        "ALIBABA_CLOUD_ROLE_ARN": config.role_arn,
        "ALIBABA_CLOUD_SESSION_NAME": config.session,
    }
    by_key, by_rrsa = (", ".join(name for name in way if not way[name]) for way in (key, rrsa))
    return f"set {by_key} for an access key, or {by_rrsa} for RRSA"

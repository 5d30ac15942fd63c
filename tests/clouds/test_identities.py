"""As whom the providers with libraries of their own sign in, and what they say when they cannot."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace

import pytest
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.ports.errors import CloudError

AZURE = {"ARM_RESOURCE_GROUP": "g", "ARM_SUBSCRIPTION_ID": "s", "ARM_TENANT_ID": "t", "ARM_CLIENT_ID": "c"}


def connect(name, environment=None, **flags):
    async def main():
        context = CloudContext(CloudFlags(**flags), Clock(), environment or {})
        async with cloud_factory(name)(context) as cloud:
            return cloud.name

    return asyncio.run(main())


@pytest.fixture
def identities(monkeypatch):
    """Put a library of identities in the place of Azure's; return what it was asked for, by kind."""
    asked = {}

    def kind(name):
        return lambda *given, **named: asked.setdefault(name, (given, named))

    names = ("ClientSecretCredential", "CertificateCredential", "WorkloadIdentityCredential")
    library = SimpleNamespace(**{name: kind(name) for name in names})
    monkeypatch.setitem(sys.modules, "azure.identity", library)
    return asked


@pytest.mark.parametrize(
    ("cloud", "authority"),
    [
        ("", None),
        ("AzurePublicCloud", None),
        ("AzureChinaCloud", "login.chinacloudapi.cn"),
        ("AZUREUSGOVERNMENTCLOUD", "login.microsoftonline.us"),
    ],
)
@pytest.mark.parametrize(
    ("way", "environment"),
    [
        ("ClientSecretCredential", {"ARM_CLIENT_SECRET": "x"}),
        ("CertificateCredential", {"ARM_CLIENT_CERT_PATH": "/c.pem"}),
        ("WorkloadIdentityCredential", {"ARM_USE_WORKLOAD_IDENTITY_EXTENSION": "true"}),
    ],
)
def test_each_azure_cloud_has_its_own_authority(identities, cloud, authority, way, environment):
    """An account of a sovereign cloud is not known to the public one."""
    assert connect("azure", {**AZURE, **environment, "ARM_CLOUD": cloud}) == "azure"
    _, named = identities[way]
    assert named.get("authority") == authority


def test_an_azure_certificate_that_is_not_there_is_named():
    """The start ends with the file's name."""
    with pytest.raises(CloudError, match=r"no valid identity.*nowhere\.pem"):
        connect("azure", {**AZURE, "ARM_CLIENT_CERT_PATH": "/nowhere.pem"})

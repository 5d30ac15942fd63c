"""As whom the providers with libraries of their own sign in, and what they say when they cannot."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace

import pytest
from tests.clouds.fakes.fleet import Clock

from kubetide.clouds.common.rest import NoAnswer, Response
from kubetide.clouds.gce.factory import read_metadata
from kubetide.clouds.registry import CloudContext, CloudFlags, cloud_factory
from kubetide.ports.errors import CloudError

AZURE = {"ARM_RESOURCE_GROUP": "g", "ARM_SUBSCRIPTION_ID": "s", "ARM_TENANT_ID": "t", "ARM_CLIENT_ID": "c"}
NODES = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"


async def names(cloud):
    return cloud.name


def connect(name, environment=None, *, story=names, warn=lambda _: None, **flags):
    """Return the result of a story over a provider that was made of flags and environment."""

    async def main():
        context = CloudContext(CloudFlags(**flags), Clock(), environment or {}, warn=warn)
        async with cloud_factory(name)(context) as cloud:
            return await story(cloud)

    return asyncio.run(main())


@pytest.fixture
def identities(monkeypatch):
    """Put a library of identities in the place of Azure's; return what it was asked for, by kind."""
    asked = {}

    def kind(name):
        return lambda *given, **named: asked.setdefault(name, (given, named))

    kinds = ("ClientSecret", "Certificate", "WorkloadIdentity", "ManagedIdentity")
    library = SimpleNamespace(**{f"{one}Credential": kind(f"{one}Credential") for one in kinds})
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


@pytest.mark.parametrize(
    ("assigned", "named"),
    [
        ("", {"client_id": None}),
        ("9d1f", {"client_id": "9d1f"}),
        (NODES, {"identity_config": {"resource_id": NODES}}),
        (NODES.lower(), {"identity_config": {"resource_id": NODES.lower()}}),
    ],
)
def test_a_managed_identity_is_named_by_client_or_by_resource(identities, assigned, named):
    """Both kinds of id stand in the same key."""
    switches = {
        "ARM_USE_MANAGED_IDENTITY_EXTENSION": "true",
        "ARM_USER_ASSIGNED_IDENTITY_ID": assigned,
    }
    connect("azure", {**AZURE, **switches})
    assert identities["ManagedIdentityCredential"] == ((), named)


def test_switches_of_azure_without_effect_are_warnings(identities):
    """A key that upstream reads and this provider cannot follow is named with the reason."""
    switches = {"AZURE_ENABLE_VMS_AGENT_POOLS": "true", "CLOUD_PROVIDER_RATE_LIMIT": "true"}
    warnings = []
    connect("azure", {**AZURE, "ARM_CLIENT_SECRET": "x"}, warn=warnings.append)
    assert warnings == []
    connect("azure", {**AZURE, **switches, "ARM_CLIENT_SECRET": "x"}, warn=warnings.append)
    assert [one.split()[1] for one in warnings] == ["enableVMsAgentPool", "cloudProviderRateLimit"]


def test_an_azure_certificate_that_is_not_there_is_named():
    """The start ends with the file's name."""
    with pytest.raises(CloudError, match=r"no valid identity.*nowhere\.pem"):
        connect("azure", {**AZURE, "ARM_CLIENT_CERT_PATH": "/nowhere.pem"})


@pytest.fixture
def gce(tmp_path, monkeypatch):
    """Make a provider whose credentials are in a file; return how, given what is in the file."""
    config, credentials = tmp_path / "gce.conf", tmp_path / "credentials.json"
    config.write_text("[global]\nproject-id = shop\nlocal-zone = us-central1-b\n")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(credentials))

    def make(content=None, **how):
        if content is not None:
            credentials.write_text(json.dumps(content))
        specs = ("mig:namePrefix=web,max=3",)
        return connect("gce", cloud_config=str(config), node_group_auto_discovery=specs, **how)

    return make


def test_credentials_of_compute_engine_that_are_not_there_are_named(gce):
    """The start ends with the file's name and the variable that names it."""
    with pytest.raises(CloudError, match=r"credentials\.json.*GOOGLE_APPLICATION_CREDENTIALS") as found:
        gce()
    assert found.value.cause == "Permission"


def test_a_token_of_compute_engine_that_cannot_be_had_is_an_error_of_the_cloud(gce, tmp_path):
    """A service of tokens that fails for a while is no fault of the program: the next loop tries again."""
    federation = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/pools/shop",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": "https://sts.googleapis.com/v1/token",
        "credential_source": {"file": str(tmp_path / "subject-token")},
    }

    async def refreshed(cloud):
        return await cloud.refresh()

    with pytest.raises(CloudError, match=r"no access token for Compute Engine.*subject-token"):
        gce(federation, story=refreshed)


@pytest.mark.parametrize(
    ("path", "key"), [("project/project-id", "project-id"), ("instance/zone", "local-zone")]
)
@pytest.mark.parametrize("answer", [Response(404), NoAnswer("http://metadata", "no such host")])
def test_what_the_metadata_server_does_not_say_has_a_key_of_its_own(path, key, answer):
    """Off Compute Engine nobody answers; the error says what to set."""

    async def send(_):
        if isinstance(answer, NoAnswer):
            raise answer
        return answer

    with pytest.raises(CloudError, match=f"set {key} in cloud-config"):
        asyncio.run(read_metadata(send, path))

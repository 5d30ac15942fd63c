"""As whom the providers with libraries of their own sign in, and what they say when they cannot."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest
from tests.clouds.fakes.fleet import Clock
from tests.clouds.fakes.server import Answer, served

from kubetide.clouds.alibaba.config import read_environment
from kubetide.clouds.alibaba.factory import MetadataService, keys_of
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


RRSA = {
    "REGION_ID": "cn-hangzhou",
    "ALIBABA_CLOUD_OIDC_PROVIDER_ARN": "acs:ram::1:oidc-provider/ack",
    "ALIBABA_CLOUD_ROLE_ARN": "acs:ram::1:role/scaler",
    "ALIBABA_CLOUD_SESSION_NAME": "kubetide",
}
ROLE = {
    "AccessKeyId": "STS.1",
    "AccessKeySecret": "s",
    "SecurityToken": "t",
    "Expiration": "2030-01-01T00:00:00Z",
}


def keys_by(environment, answer):
    """Return the keys for Alibaba Cloud that the answers to requests make, and the requests."""
    asked = []

    async def send(request):
        asked.append(request)
        found = answer(request)
        if isinstance(found, Exception):
            raise found
        return found

    config = read_environment(environment)
    return asyncio.run(keys_of(send, config, Clock(), MetadataService(send, config))()), asked


@pytest.mark.parametrize(
    ("cloud", "names"),
    [
        ("tencentcloud", ("REGION", "SECRET_ID", "SECRET_KEY")),
        ("alicloud", ("REGION_ID", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET")),
    ],
)
def test_the_line_end_of_a_file_in_a_variable_is_named(cloud, names):
    """A Secret that was made of a file with one would be refused for its signature, or by the HTTP library."""
    environment = dict.fromkeys(names, "a")
    assert connect(cloud, environment, nodes=("0:1:asg-a",)) == cloud
    for name in names:
        with pytest.raises(CloudError, match=f"variable {name} begins or ends with white space"):
            connect(cloud, {**environment, name: "a\n"}, nodes=("0:1:asg-a",))


def test_a_token_is_sent_in_the_body_of_its_request(tmp_path):
    """It is a secret, and longer than a URL may be; query and form are parted as upstream parts them."""
    (tmp_path / "token").write_text("a.b.c\n")
    answer = Response(200, {}, json.dumps({"Credentials": ROLE}).encode())
    environment = {**RRSA, "ALIBABA_CLOUD_OIDC_TOKEN_FILE": str(tmp_path / "token")}
    keys, [request] = keys_by(environment, lambda _: answer)
    assert keys == ("STS.1", "s", "t")
    assert dict(parse_qsl(request.body.decode())) == {
        "RoleArn": "acs:ram::1:role/scaler",
        "OIDCProviderArn": "acs:ram::1:oidc-provider/ack",
        "OIDCToken": "a.b.c",
    }
    assert request.query.keys() == {
        "Action",
        "Format",
        "RoleSessionName",
        "SignatureNonce",
        "Timestamp",
        "Version",
    }


def test_a_token_that_cannot_be_read_is_named():
    """The file may come a moment later: the next loop tries again."""
    environment = {**RRSA, "ALIBABA_CLOUD_OIDC_TOKEN_FILE": "/nowhere/token"}
    with pytest.raises(CloudError, match=r"ALIBABA_CLOUD_OIDC_TOKEN_FILE: .*/nowhere/token") as found:
        keys_by(environment, lambda _: Response(200))
    assert found.value.cause == "Permission"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "cannot be read"),
        (b"{}", "cannot be read"),
        (json.dumps({"Credentials": {}}).encode(), "has no keys"),
        (json.dumps({"Credentials": {**ROLE, "Expiration": "soon"}}).encode(), "end of the keys"),
    ],
)
def test_keys_of_a_role_that_cannot_be_read_are_an_error_of_the_cloud(tmp_path, body, text):
    """An odd answer of the token service is no fault of the program."""
    (tmp_path / "token").write_text("a.b.c")
    environment = {**RRSA, "ALIBABA_CLOUD_OIDC_TOKEN_FILE": str(tmp_path / "token")}
    with pytest.raises(CloudError, match=text):
        keys_by(environment, lambda _: Response(200, {}, body))


@pytest.mark.parametrize("answer", [Response(404), Response(200), NoAnswer("http://metadata", "no route")])
def test_what_the_environment_lacks_is_named_where_the_machine_has_no_role(answer):
    """Of an access key without its region, and of RRSA without a session, just these are asked for."""
    environment = {**RRSA, "ACCESS_KEY_ID": "id", "ALIBABA_CLOUD_OIDC_TOKEN_FILE": "/token"}
    del environment["ALIBABA_CLOUD_SESSION_NAME"]
    advice = "set ACCESS_KEY_SECRET for an access key, or ALIBABA_CLOUD_SESSION_NAME for RRSA"
    with pytest.raises(CloudError, match=f"ram/security-credentials/.*; {advice}"):
        keys_by(environment, lambda _: answer)


def test_the_role_of_a_machine():
    """The first role that the machine has signs."""

    def answer(request):
        path = request.url.rpartition("security-credentials/")[2]
        return Response(200, {}, json.dumps(ROLE).encode() if path else b"nodes\nmore\n")

    keys, asked = keys_by({}, answer)
    assert keys == ("STS.1", "s", "t")
    assert asked[-1].url == "http://100.100.100.200/latest/meta-data/ram/security-credentials/nodes"


def test_the_metadata_service_of_the_environment_is_asked():
    """METADATA_ENDPOINT is in the place of the usual address, as upstream."""

    def metadata(asked):
        assert asked.path == "/latest/meta-data/region-id"
        return Answer("eu-central-1")

    async def main():
        async with served(metadata) as address:
            context = CloudContext(
                CloudFlags(nodes=("0:1:asg-a",)), Clock(), {"METADATA_ENDPOINT": address}, warn=None
            )
            async with cloud_factory("alicloud")(context) as cloud:
                return cloud.name

    assert asyncio.run(main()) == "alicloud"

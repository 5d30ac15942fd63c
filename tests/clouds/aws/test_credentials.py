"""Credentials that cannot be had: the error names the call that was refused, and what to correct."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("boto3", reason="boto3 is an extra")

from kubetide.clouds.aws.api import CHANGES, CREATING
from kubetide.clouds.aws.client import BotoClient
from kubetide.clouds.aws.config import AwsConfig, aws_config
from kubetide.clouds.aws.errors import api_error
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.ports.errors import CloudError, CloudWithheld

REFUSAL = (
    b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
    b"<Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error>"
    b"<RequestId>1</RequestId></ErrorResponse>"
)


class Sts(BaseHTTPRequestHandler):
    """A token service that gives nobody a role."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(403)
        self.send_header("Content-Length", str(len(REFUSAL)))
        self.end_headers()
        self.wfile.write(REFUSAL)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def refusing_sts(monkeypatch, tmp_path):
    """Serve a token service that refuses, and set the environment that IRSA sets."""
    server = HTTPServer(("127.0.0.1", 0), Sts)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    token = tmp_path / "token"
    token.write_text("token", encoding="utf-8")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/autoscaler")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_address[1]}")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("refusing_sts")
def test_a_role_that_may_not_be_assumed_is_named_as_such():
    """The refused call is that of the token service, and the way out is the trust policy of the role."""
    client = BotoClient(AwsConfig("eu-west-1", 1))
    try:
        with pytest.raises(CloudError) as caught:
            asyncio.run(client("DescribeAutoScalingGroups", {}))
    finally:
        client.close()
    text = str(caught.value)
    assert caught.value.cause == "Permission", text
    assert text.startswith("AssumeRoleWithWebIdentity: AccessDenied: Not authorized")
    assert "trust policy" in text
    assert "DescribeAutoScalingGroups" not in text


@pytest.mark.parametrize(
    ("operation", "code", "action"),
    [
        ("SetDesiredCapacity", "AccessDenied", "autoscaling:SetDesiredCapacity"),
        ("DescribeInstanceTypes", "UnauthorizedOperation", "ec2:DescribeInstanceTypes"),
        ("DescribeNodegroup", "AccessDeniedException", "eks:DescribeNodegroup"),
    ],
)
def test_a_missing_right_is_named_as_a_policy_has_it(operation, code, action):
    """The text can be pasted into the policy of the role."""
    assert f"allow {action} to the role" in str(api_error(operation, code, "no"))


def test_a_token_that_aws_does_not_take_is_a_matter_of_permission():
    """A provider of identities that the account does not know is no passing fault."""
    assert api_error("AssumeRoleWithWebIdentity", "InvalidIdentityToken", "no").cause == "Permission"


def test_a_token_file_that_is_not_there_is_a_matter_of_permission(monkeypatch, refusing_sts):
    """The error names the file and the ways to credentials."""
    del refusing_sts
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere/token")
    client = BotoClient(AwsConfig("eu-west-1", 1))
    try:
        with pytest.raises(CloudError, match=r"/nowhere/token.*give this program a role") as caught:
            asyncio.run(client("DescribeAutoScalingGroups", {}))
    finally:
        client.close()
    assert caught.value.cause == "Permission"


def test_a_profile_that_is_not_there_is_refused_at_once(monkeypatch):
    """The text names the variable."""
    monkeypatch.setenv("AWS_PROFILE", "nope")
    with pytest.raises(CloudConfigError, match=r"profile \(nope\) could not be found; correct AWS_PROFILE"):
        BotoClient(AwsConfig("eu-west-1", 1))


def test_an_endpoint_that_is_no_url_is_refused_at_once():
    """The text names the section and the form."""
    text = '[ServiceOverride "1"]\nService=ec2\nRegion=r\nURL=ec2.example\nSigningRegion=r\n'
    with pytest.raises(
        CloudConfigError, match=r'ServiceOverride "1": url ec2\.example is not of the form https://'
    ):
        aws_config(text, {})


@pytest.mark.parametrize(("status", "is_open"), [(400, False), (503, True), (200, True)])
def test_an_order_that_no_answer_refuses_may_be_done(monkeypatch, status, is_open):
    """A refusal says that it was not; the failure of a server and an answer that is none do not."""

    class Scaling(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b"" if status == 200 else REFUSAL
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) or 5))
            self.end_headers()
            self.wfile.write(body or b"<html")

        def log_message(self, *_):
            pass

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    server = HTTPServer(("127.0.0.1", 0), Scaling)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = BotoClient(AwsConfig("eu-west-1", 1))
    try:
        with pytest.raises(CloudError) as caught:
            asyncio.run(client("SetDesiredCapacity", {"AutoScalingGroupName": "web", "DesiredCapacity": 1}))
    finally:
        client.close()
        server.shutdown()
        server.server_close()
    assert caught.value.may_be_done is is_open


def test_a_change_asks_whether_it_may_be_made():
    """Without the lease no operation that changes a group is sent; one that only reads is."""
    client = BotoClient(AwsConfig("eu-west-1", 1), withheld=lambda: "the lease is lost")
    for operation in sorted(CHANGES | CREATING - {"DescribeSubnets"}):
        with pytest.raises(CloudWithheld, match="the lease is lost"):
            asyncio.run(client(operation, {}))
    assert not client.calls

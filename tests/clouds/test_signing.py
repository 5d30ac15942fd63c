"""The request signatures of Tencent Cloud and Alibaba Cloud."""

from __future__ import annotations

import pytest

from kubetide.clouds.alibaba import signing as acs3
from kubetide.clouds.common.tokens import Keys
from kubetide.clouds.tencent import signing as tc3

HEADERS = {
    "content-type": "application/json; charset=utf-8",
    "host": "cvm.tencentcloudapi.com",
}
BODY = b'{"Limit": 1, "Filters": [{"Values": ["\\u672a\\u547d\\u540d"], "Name": "instance-name"}]}'
STAMP = tc3.Stamp(1551113065, "2019-02-25")


@pytest.mark.parametrize(
    ("keys", "headers", "signature"),
    [
        (
            Keys("AKIDz8krbsJ5yKBZQpn74WFkmLPx3*******", "Gu5t9xGARNpq86cd98joQYCN3*******"),
            HEADERS,
            "2230eefd229f582d8b1b891af7107b91597240707d778ab3738f756258d7652c",
        ),
        (
            Keys("AKID********************************", "********************************"),
            {**HEADERS, "x-tc-action": "DescribeInstances"},
            "10b1a37a7301a02ca19a647ad722d5e43b4b3cff309d421d85b46093f6ab6c4f",
        ),
    ],
)
def test_the_published_examples_of_tencent(keys, headers, signature):
    """Both examples that Tencent Cloud's documentation has had come out the same."""
    found = tc3.authorization(keys, STAMP, "cvm", headers, BODY)
    assert found == (
        f"TC3-HMAC-SHA256 Credential={keys.id}/2019-02-25/cvm/tc3_request, "
        f"SignedHeaders={';'.join(sorted(headers))}, Signature={signature}"
    )


def test_the_published_example_of_alibaba():
    """The example of Alibaba Cloud's documentation comes out the same."""
    call = acs3.Call(
        action="RunInstances",
        version="2014-05-26",
        host="ecs.cn-shanghai.aliyuncs.com",
        date="2023-10-26T10:22:32Z",
        nonce="3156853299f313e23d1673dc12e1703d",
    )
    query = {"RegionId": "cn-shanghai", "ImageId": "win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"}
    keys = Keys("YourAccessKeyId", "YourAccessKeySecret")
    found = acs3.signed_headers(keys, call, query)["Authorization"]
    assert found.endswith("Signature=06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0")


def test_each_part_counts():
    """A signature changes with the key, the day, the service, the body and each header; tokens are signed too."""
    keys = Keys("id", "secret")
    found = {
        tc3.authorization(keys, STAMP, "cvm", HEADERS, BODY),
        tc3.authorization(keys._replace(secret="other"), STAMP, "cvm", HEADERS, BODY),
        tc3.authorization(keys, STAMP._replace(day="2019-02-26"), "cvm", HEADERS, BODY),
        tc3.authorization(keys, STAMP, "as", HEADERS, BODY),
        tc3.authorization(keys, STAMP, "cvm", HEADERS, b"{}"),
        tc3.authorization(keys, STAMP, "cvm", {**HEADERS, "host": "as.tencentcloudapi.com"}, BODY),
    }
    assert len(found) == 6
    call = acs3.Call("A", "1", "h", "2023-10-26T10:22:32Z", "n")
    headers = acs3.signed_headers(Keys("id", "secret", "token"), call, {})
    assert headers["x-acs-security-token"] == "token"
    assert ";x-acs-security-token;" in headers["Authorization"]


def test_queries_are_escaped_as_the_signature_expects():
    """Parameters are in order, with blanks, stars and tildes as RFC 3986 has them."""
    assert acs3.query_string({"b": "x y*~/", "a": "ü"}) == "a=%C3%BC&b=x%20y%2A~%2F"


def test_tencents_own_library_signs_the_same():
    """Tencent's SDK, where it is installed, makes the same signature."""
    sign = pytest.importorskip("tencentcloud.common.sign", reason="the SDK serves as an oracle only").Sign
    lines = "".join(f"{name}:{HEADERS[name]}\n" for name in sorted(HEADERS))
    import hashlib

    canonical = "\n".join(("POST", "/", "", lines, "content-type;host", hashlib.sha256(BODY).hexdigest()))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"TC3-HMAC-SHA256\n{STAMP.seconds}\n{STAMP.day}/cvm/tc3_request\n{digest}"
    expected = sign.sign_tc3("secret", STAMP.day, "cvm", to_sign)
    found = tc3.authorization(Keys("id", "secret"), STAMP, "cvm", HEADERS, BODY)
    assert found.endswith(f"Signature={expected}")


def test_alibabas_own_library_signs_the_same():
    """Alibaba's SDK, where it is installed, makes the same signature."""
    utils = pytest.importorskip("alibabacloud_tea_openapi.utils", reason="the SDK serves as an oracle only")
    from types import SimpleNamespace

    call = acs3.Call("DescribeScalingGroups", "2014-08-28", "ess.h", "2023-10-26T10:22:32Z", "n")
    keys, query = Keys("id", "secret", "token"), {"ScalingGroupId.1": "asg-1", "RegionId": "cn *~"}
    headers = acs3.signed_headers(keys, call, query)
    expected = headers.pop("Authorization")
    request = SimpleNamespace(pathname="/", query=query, headers=headers, method="POST")
    payload = headers["x-acs-content-sha256"]
    found = utils.Utils.get_authorization(request, acs3.ALGORITHM, payload, keys.id, keys.secret)
    assert found.replace(", ", ",") == expected

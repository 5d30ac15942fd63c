"""The address of the server and the user: files, the pod's own account, the environment, and their order."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.cluster.test_kubectl import kubectls

from kubetide.cluster import (
    ConfigError,
    Connection,
    ExecPlugin,
    Impersonation,
    KubeconfigError,
    PemFiles,
    find_connection,
    in_cluster,
    load_kubeconfig,
    read_kubeconfigs,
)
from kubetide.cluster.access.incluster import why_no_account
from kubetide.serving.certificates import Authority
from kubetide.serving.proxy import proxy_for

AUTHORITY = Authority()
PEM = AUTHORITY.certificate.decode()
PAIR = AUTHORITY.client("jane", ())
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "interactiveMode": "Never"}


def write(path, *, cluster=None, user=None, name="one", **top):
    """Write a kubeconfig whose cluster, user and context have one name."""
    config = {
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}:6443", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        **top,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def test_certificates_are_data_or_files_beside_the_kubeconfig(tmp_path):
    """Both forms give the same connection; data goes before a file."""
    for name, text in (
        ("ca.pem", PEM),
        ("jane.pem", PAIR.certificate.decode()),
        ("jane.key", PAIR.key.decode()),
    ):
        (tmp_path / name).write_text(text)
    files = write(
        tmp_path / "files",
        cluster={"certificate-authority": "ca.pem"},
        user={"client-certificate": "jane.pem", "client-key": "jane.key"},
    )
    encoded = {
        "client-certificate-data": base64.b64encode(PAIR.certificate).decode(),
        "client-key-data": base64.b64encode(PAIR.key).decode(),
        "client-certificate": "not-there.pem",
    }
    data = write(
        tmp_path / "data",
        cluster={"certificate-authority-data": base64.b64encode(PEM.encode()).decode()},
        user=encoded,
    )
    assert replace(load_kubeconfig(files), files=PemFiles()) == load_kubeconfig(data)
    assert load_kubeconfig(files).key == PAIR.key.decode()


def test_everything_a_cluster_and_a_user_may_say(tmp_path):
    """Names, proxies, plug-ins and whom to act as come through; paths are relative to the file."""
    path = write(
        tmp_path / "config",
        cluster={
            "server": "https://10.0.0.1:6443/prefix/",
            "tls-server-name": "inner",
            "proxy-url": "http://proxy:3128",
            "insecure-skip-tls-verify": True,
        },
        user={
            "as": "jane",
            "as-uid": "7",
            "as-groups": ["dev", "ops"],
            "as-user-extra": {"Scopes": ["a", "b"]},
            "exec": {
                **EXEC,
                "args": ["--cluster", "one"],
                "env": [{"name": "REGION", "value": "x"}],
                "installHint": "get it from the shelf",
                "provideClusterInfo": True,
            },
        },
        contexts=[{"name": "one", "context": {"cluster": "one", "user": "one", "namespace": "shop"}}],
    )
    assert load_kubeconfig(path) == Connection(
        url="https://10.0.0.1:6443/prefix",
        verify=False,
        server_name="inner",
        proxy="http://proxy:3128",
        namespace="shop",
        impersonate=Impersonation("jane", "7", ("dev", "ops"), {"Scopes": ("a", "b")}),
        plugin=ExecPlugin(
            api_version="client.authentication.k8s.io/v1",
            command=str(tmp_path / "login"),
            args=("--cluster", "one"),
            env={"REGION": "x"},
            install_hint="get it from the shelf",
            interactive_mode="Never",
            cluster={
                "server": "https://10.0.0.1:6443/prefix/",
                "tls-server-name": "inner",
                "insecure-skip-tls-verify": True,
                "proxy-url": "http://proxy:3128",
            },
        ),
    )


def test_of_several_files_the_first_holds(tmp_path):
    """An entry of the first file hides the whole entry of that name in a later one; others are added."""
    first = write(tmp_path / "a" / "config", user={"token": "first"})
    second = write(
        tmp_path / "b" / "config",
        cluster={"server": "https://elsewhere", "tls-server-name": "hidden"},
        user={"token": "second", "as": "hidden"},
        name="one",
    )
    third = write(tmp_path / "c" / "config", name="two", user={"tokenFile": "token"})
    merged = read_kubeconfigs([first, second, third])
    assert merged.connection() == Connection("https://one:6443", "first")
    assert merged.connection("two") == Connection("https://two:6443", token_file=tmp_path / "c" / "token")


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        ({}, {"username": "u", "password": "hush"}, "username, password: API servers take no basic auth"),
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider: was removed from Kubernetes in 1.26"),
        ({}, {"client-certificate-data": base64.b64encode(PAIR.certificate).decode()}, "client-key: is missing"),
        ({}, {"client-key-data": "???"}, "client-key-data: is not base64"),
        ({}, {"client-certificate": "gone.pem"}, "gone.pem cannot be read"),
        ({}, {"token": 7}, "token: expected text, not int"),
        ({}, {"as-groups": ["dev"]}, "as: is missing"),
        ({}, {"as": "jane", "as-groups": "dev"}, "as-groups: expected a list"),
        ({}, {"exec": {**EXEC, "command": ""}}, "command must be specified for one"),
        ({}, {"exec": {**EXEC, "interactiveMode": None}}, "interactiveMode must be specified for one"),
        ({}, {"exec": {**EXEC, "interactiveMode": "Maybe"}}, "Maybe is none of Never"),
        ({}, {"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "v1alpha1 is not supported"),
        ({}, {"exec": {**EXEC, "env": ["A=b"]}}, "exec.env: expected a list of maps"),
        ({}, {"exec": EXEC, "token": "hush"}, "exclude one another"),
        ({"server": ""}, {}, "server: is missing or no URL"),
        ({"server": "https://jane:hush@one"}, {}, "server: holds a password"),
        ({"proxy-url": "socks5://p:1"}, {}, "scheme socks5 is not supported"),
        ({"certificate-authority-data": base64.b64encode(b"no PEM").decode()}, {}, "certificate-authority: cannot be"),
        (
            {
                "certificate-authority-data": base64.b64encode(PEM.encode()).decode(),
                "insecure-skip-tls-verify": True,
            },
            {},
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(tmp_path, cluster, user, said):
    """An error names the file, the entry and the field, and shows no secret."""
    path = write(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(KubeconfigError) as error:
        load_kubeconfig(path)
    assert str(path) in str(error.value)
    assert '"one"' in str(error.value)
    assert said in str(error.value)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("users: [{name: u, user: {token: hush}]", "cannot be read as a kubeconfig"),
        ("users: {name: u}", "users: expected a list"),
        ("users: [u]", "users: each entry must be a map"),
        ("users: [{name: u}, {name: u}]", 'users: duplicate name "u"'),
    ],
)
def test_a_broken_file_is_named_without_its_text(tmp_path, text, said):
    """A text that is no kubeconfig is named by file and place, and not quoted: it may hold a token."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError) as error:
        read_kubeconfigs([path])
    assert str(path) in str(error.value)
    assert said in str(error.value)
    assert "hush" not in str(error.value)


def test_no_secret_is_shown(tmp_path):
    """The printed configuration holds no tokens, keys, passwords or input of plug-ins."""
    path = write(
        tmp_path / "config",
        cluster={"proxy-url": "http://me:hush@proxy"},
        user={"exec": {**EXEC, "args": ["hush"], "env": [{"name": "A", "value": "hush"}]}},
    )
    token = write(tmp_path / "token", user={"token": "hush"})
    for shown in (load_kubeconfig(path), load_kubeconfig(token), read_kubeconfigs([path, token])):
        assert "hush" not in repr(shown)


# ── a pod's own account ─────────────────────────────────────────────────────────────────────────

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path):
    """A service account as the kubelet puts it into a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token\n")
    (folder / "ca.crt").write_text(PEM)
    (folder / "namespace").write_text("autoscaling")
    return folder


def test_a_pod_has_its_service_account(account):
    """Address from the environment; token, authority and namespace from the folder."""
    assert in_cluster(POD, account) == Connection(
        url="https://10.96.0.1:443",
        token="pod-token",
        token_file=account / "token",
        authority=PEM,
        files=PemFiles(authority=account / "ca.crt"),
        namespace="autoscaling",
    )
    assert in_cluster({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account).url == "https://[fd00::1]:443"


def test_what_is_no_pod_says_so(account):
    """Upstream's words where the environment says nothing, the missing file where there is no account."""
    with pytest.raises(
        ConfigError, match="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
    ):
        in_cluster({}, account)
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(POD, account / "elsewhere")


def test_a_pod_without_a_token_is_not_called_no_pod(tmp_path, account):
    """Without a kubeconfig the error names the token that is missing in a pod, and elsewhere that this is none."""
    assert why_no_account(POD, account) == ""
    assert why_no_account({}, account) == "this is no pod"
    bare = tmp_path / "bare"
    with pytest.raises(ConfigError, match=r"this pod has no service account: .*bare/token is missing"):
        find_connection(POD, home=tmp_path / "nobody", service_account=bare)


def test_the_order_of_places(tmp_path, account):
    """A named file, then KUBECONFIG, then the home folder, then the pod's account; else an error."""
    home = tmp_path / "home"
    named, said = write(tmp_path / "named", name="named"), write(tmp_path / "said", name="said")
    empty = tmp_path / "empty"
    empty.write_text("")
    environ = {**POD, "KUBECONFIG": f"{tmp_path / 'missing'}:{empty}:{said}"}

    def found(environ, **more):
        return find_connection(environ, home=home, service_account=account, **more).url

    assert found(environ, kubeconfig=str(named)) == "https://named:6443"
    assert found(environ) == "https://said:6443"
    assert found(POD) == "https://10.96.0.1:443"
    write(home / ".kube" / "config", name="home")
    assert found(POD) == "https://home:6443"
    assert found(environ, only_own_pod=True) == "https://10.96.0.1:443"
    assert found(environ, only_own_pod=True, kubeconfig=str(named)) == "https://named:6443"
    with pytest.raises(KubeconfigError, match="gone"):
        found(environ, kubeconfig=str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match="no configuration has been provided"):
        find_connection({}, home=tmp_path / "nobody", service_account=account)


# ── proxies ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "exceptions", "proxied"),
    [
        ("https://api.example.com", "", True),
        ("https://api.example.com", "*", False),
        ("https://api.example.com", "example.com", False),
        ("https://example.com", "example.com", False),
        ("https://api.example.com", ".example.com", False),
        ("https://example.com", ".example.com", True),
        ("https://badexample.com", "example.com", True),
        ("https://api.example.com:6443", "example.com:6443", False),
        ("https://api.example.com:6443", "example.com:443", True),
        ("https://api.example.com", " other.com , API.example.com ", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://11.1.2.3:6443", "10.0.0.0/8", True),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "10.1.2.3:443", True),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
    ],
)
def test_which_servers_are_reached_directly(url, exceptions, proxied):
    """NO_PROXY names hosts, domains, addresses and networks; this machine is never proxied."""
    environ = {"HTTPS_PROXY": "proxy:3128", "no_proxy": exceptions}
    assert proxy_for(url, environ) == ("http://proxy:3128" if proxied else "")


def test_the_environment_s_proxy_gives_way_to_the_kubeconfig_s(tmp_path):
    """proxy-url holds; without it HTTPS_PROXY, by the scheme of the server."""
    plain, own = write(tmp_path / "plain"), write(tmp_path / "own", cluster={"proxy-url": "http://own:1"})
    environ = {"https_proxy": "http://all:1", "HTTP_PROXY": "http://plain:1"}
    proxies = [find_connection(environ, home=Path(), kubeconfig=str(path)).proxy for path in (plain, own)]
    assert proxies == ["http://all:1", "http://own:1"]
    with pytest.raises(ConfigError, match="HTTPS_PROXY: scheme socks5"):
        find_connection({"HTTPS_PROXY": "socks5://p:1"}, home=Path(), kubeconfig=str(plain))


@pytest.mark.parametrize(
    "kubectl", kubectls() or [pytest.param("", marks=pytest.mark.skip("no kubectl on the PATH"))]
)
def test_files_are_merged_as_kubectl_merges_them(kubectl, tmp_path):
    """kubectl shows the same entries and context of three files that share names."""
    paths = [
        write(
            tmp_path / "a", user={"token": "a"}, cluster={"tls-server-name": "a"}, **{"current-context": ""}
        ),
        write(tmp_path / "b", user={"token": "b", "as": "b"}, cluster={"server": "https://b"}),
        write(tmp_path / "c", user={"client-key": "c.key"}, name="two"),
    ]
    command = [kubectl, "config", "view", "--raw", "-o", "json"]
    environ = {"PATH": os.environ["PATH"], "KUBECONFIG": os.pathsep.join(map(str, paths))}
    shown = json.loads(subprocess.run(command, capture_output=True, check=True, env=environ).stdout)
    merged = read_kubeconfigs(paths)
    assert merged.current_context == shown["current-context"] == "one"
    kubectls = {
        (kind, one["name"]): one[kind] for kind in ("cluster", "user", "context") for one in shown[f"{kind}s"]
    }
    kubectls["user", "two"]["client-key"] = Path(kubectls["user", "two"]["client-key"]).name
    assert {key: entry.body for key, entry in merged.entries.items()} == kubectls

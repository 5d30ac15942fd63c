"""The command ``convert``: dumps in, manifests out."""

from __future__ import annotations

import json

import yaml
from click.testing import CliRunner
from tests.elastic.convertible import hpa

from kubetide.cli.main import cli
from kubetide.embedded.apiserver.manifests.manifest import load_manifests


def run(*args, text=""):
    return CliRunner().invoke(cli, ["convert", *args], input=text)


def test_the_command_reads_a_dump_and_writes_what_it_can_read():
    """As ``kubectl get -o yaml`` prints it: server fields go, other kinds are passed over, the output is read again."""
    dumped = {
        **hpa(uid="1", resourceVersion="7", labels={"on": "off", "v": "1e3"}),
        "status": {"currentReplicas": 2},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [dumped, service]})
    there = run("-", text=text)
    assert there.exit_code == 0, there.output
    [(_, made)] = load_manifests(there.output, "out")
    assert made["metadata"]["labels"] == {"on": "off", "v": "1e3"}
    back = run("--back", "-", "-o", "json", text=there.output)
    assert json.loads(back.output)["items"] == [hpa(labels={"on": "off", "v": "1e3"})]


def test_the_command_says_what_it_cannot_convert(tmp_path):
    """Objects that can be converted are printed, the others are named on standard error, and the exit status is 1."""
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([hpa(), hpa("other", "db", finalizers=["x/y"])]))
    found = run(str(path))
    assert found.exit_code == 1
    assert "kind: ElasticWorkload" in found.stdout
    assert (
        found.stderr == "not converted: HorizontalPodAutoscaler other: metadata.finalizers cannot be kept\n"
    )
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}))
    assert "there is no HPA, VPA or time table among the 1 objects" in run(str(path)).stderr

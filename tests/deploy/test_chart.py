"""The Helm chart, rendered by Helm: what it makes of values, and that an API server takes it."""

from __future__ import annotations

import asyncio
import subprocess
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
import yaml
from tests.cluster.served import TOKEN, served
from tests.deploy.conftest import ACT, BOTH, DEFINITIONS, UI
from tools.manifests import (
    CHART,
    CRDS,
    DEPLOY,
    MANIFESTS,
    VPA_CRDS,
    RenderError,
    crds,
    manifest,
    render,
    schema,
    vpa_crds,
)
from tools.plane.build import find

from kubetide.cli.ui import command as ui_command
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.runtime.configuration.config import make_config, read_file
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import seconds
from kubetide.vertical.admission.settings import Settings as AdmissionSettings
from kubetide.vertical.definitions import definitions


def of_kind(objects, kind):
    (found,) = [one for one in objects if one["kind"] == kind]
    return found


def config_of(objects, tmp_path):
    file = tmp_path / "kubetide.yaml"
    file.write_text(of_kind(objects, "ConfigMap")["data"]["kubetide.yaml"])
    return make_config([(str(file), read_file(file))])


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_manifests_are_what_the_chart_gives(helm, name):
    """`python -m tools.manifests` has been run since the chart was changed."""
    assert (DEPLOY / "manifests" / name).read_text(encoding="utf-8") == manifest(helm, name)


def test_the_definitions_are_what_the_program_installs():
    """`python -m tools.manifests` has been run since a definition was changed."""
    assert CRDS.read_text(encoding="utf-8") == crds()
    assert VPA_CRDS.read_text(encoding="utf-8") == vpa_crds()


def test_the_kinds_of_vpa_objects_come_where_they_are_asked_for(rendered):
    """Off by default, as upstream's chart may have made them; a release that goes leaves them, and all VPA objects, there."""
    kind = "CustomResourceDefinition"
    assert kind not in {one["kind"] for one in rendered()}
    found = [one for one in rendered(DEFINITIONS) if one["kind"] == kind]
    assert [one["metadata"]["name"] for one in found] == [one["metadata"]["name"] for one in definitions()]
    assert {one["metadata"]["annotations"]["helm.sh/resource-policy"] for one in found} == {"keep"}


def test_by_default_it_advises(rendered, tmp_path):
    """One replica, which serves where it is probed, writes where it may, and may read only."""
    objects = rendered()
    config = config_of(objects, tmp_path)
    assert (config.run.act, config.run.controllers) == (False, ("horizontal",))
    deployment = of_kind(objects, "Deployment")["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["replicas"] == 1
    assert config.run.address == f":{container['ports'][0]['containerPort']}"
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"/etc/kubetide": True, config.run.out: False}
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsUser"] == 65532
    verbs = {
        verb
        for one in objects
        if one["kind"] in {"Role", "ClusterRole"}
        for rule in one["rules"]
        for verb in rule["verbs"]
    }
    assert verbs == {"get", "list", "watch"}


def test_a_release_that_acts_has_a_standby(rendered, tmp_path):
    """A Lease lets one of two replicas act."""
    objects = rendered(ACT)
    config = config_of(objects, tmp_path)
    assert config.run.act
    assert config.run.leader_elect
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    assert of_kind(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_release_that_answers_reviews_has_no_standby(rendered):
    """One that waits for its Lease shows a certificate that nobody trusts, but the webhook's Service would send it every other one."""
    objects = rendered(ACT, "--set=config.controllers={recommender,updater,admission}")
    service = next(one for one in objects if one["metadata"]["name"] == "vpa-webhook")
    deployment = of_kind(objects, "Deployment")["spec"]
    assert service["spec"]["selector"].items() <= deployment["template"]["metadata"]["labels"].items()
    assert deployment["replicas"] == 1


def test_with_a_secret_of_certificates_it_has(rendered):
    """Then each replica answers; the files stand where the flags expect them."""
    loops = "--set=config.controllers={recommender,updater,admission}"
    objects = rendered(ACT, loops, "--set=webhook.certificateSecret=vpa-tls-certs")
    deployment = of_kind(objects, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    pod = deployment["template"]["spec"]
    [volume] = [one["name"] for one in pod["volumes"] if one.get("secret") == {"secretName": "vpa-tls-certs"}]
    mounts = {one["mountPath"] for one in pod["containers"][0]["volumeMounts"] if one["name"] == volume}
    flags = AdmissionSettings()
    files = (flags.client_ca_file, flags.tls_cert_file, flags.tls_private_key)
    assert {str(Path(one).parent) for one in files} == mounts


def test_settings_arrive_as_they_were_said(rendered, tmp_path):
    """Numbers, durations, switches and lists of the values are what `kubetide config check` reads."""
    values = tmp_path / "values.yaml"
    settings = {
        "controllers": ["horizontal", "nodes"],
        "cloud-provider": "mine",
        "scan-interval": "20s",
        "kube-api-qps": 12.5,
        "kube-api-burst": 1000000,
        "leader-elect-lease-duration": "20s",
        "horizontal-pod-autoscaler-tolerance": 0.2,
    }
    values.write_text(yaml.safe_dump({"config": settings}))
    config = config_of(rendered(f"--values={values}"), tmp_path)
    assert config.run.controllers == ("horizontal", "nodes")
    assert (config.run.kube_api_qps, config.run.kube_api_burst) == (12.5, 1000000)
    assert config.run.leader_elect_lease_duration == seconds(20)
    assert config.loops.of(NodesSettings).scan_interval == seconds(20)
    assert config.loops.of(HorizontalSettings).tolerance == 0.2


def test_a_change_of_settings_restarts_the_pods(rendered):
    """Settings are read once, so the pods' template changes with them."""

    def checksum(*flags):
        template = of_kind(rendered(*flags), "Deployment")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert checksum() == checksum()
    assert checksum() != checksum("--set=config.horizontal-pod-autoscaler-tolerance=0.2")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--set=config.controllers={vertical}",), "/config/controllers/0"),
        (("--set=config.controllers={nodes}",), "cloud-provider"),
        (("--set=config.act=maybe",), "/config/act"),
        (("--set=config.out=/tmp",), "/config"),
        (("--set=config.leader-elect=false",), "/config/leader-elect"),
        (("--set=replica=3",), "replica"),
        (("--set=service.port=80",), "/service/port"),
        (("--set=config.scan-intervall=10s",), "scan-intervall"),
        (("--set=image.tag=sha256:abc",), "/image/tag"),
        (("--set=image.digest=abc",), "/image/digest"),
        (("--set=fullnameOverride=Not_A_Name",), "/fullnameOverride"),
        (("--set=extraArgs={act}",), "/extraArgs/0"),
        (("--set=serviceAccount.name=A b",), "/serviceAccount/name"),
        (("--set=ui.port=80",), "/ui/port"),
        (("--set=ui.enabled=true", "--set=ui.port=8085"), "three different ports, not 8085, 8085"),
        (
            ("--set=ui.enabled=true", "--set=ui.port=8000", "--set=config.controllers={admission}"),
            "not 8085, 8000, 8000",
        ),
        (("--set=records.sizeLimit=10GB",), "/records/sizeLimit"),
        (("--set=ui.ingress.enabled=true", "--set=ui.ingress.host=a.example.com"), "/ui/ingress/tlsSecret"),
    ],
)
def test_wrong_values_are_refused(helm, flags, problem):
    """Values that violate the schema, or contradict each other, are reported with their place."""
    with pytest.raises(RenderError) as found:
        render(helm, *flags)
    assert problem in str(found.value)


def test_the_schema_knows_every_setting():
    """`python -m tools.manifests` has been run since a setting came or went."""
    assert (CHART / "values.schema.json").read_text(encoding="utf-8") == schema()


def test_pods_are_what_the_values_say(rendered):
    """A digest holds over a tag; labels and annotations come beside the chart's own; flags behind the file."""
    digest = "sha256:" + "0123456789abcdef" * 4
    objects = rendered(
        "--set=image.tag=1.2",
        f"--set=image.digest={digest}",
        "--set=podLabels.team=web",
        "--set=podAnnotations.note=seen",
        "--set=extraArgs={--scan-interval=20s}",
        "--set=fullnameOverride=scaler",
    )
    template = of_kind(objects, "Deployment")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert container["image"] == f"kubetide@{digest}"
    assert container["args"][1:] == ["--config=/etc/kubetide/kubetide.yaml", "--scan-interval=20s"]
    assert template["metadata"]["labels"]["team"] == "web"
    assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "kubetide"
    assert template["metadata"]["annotations"]["note"] == "seen"
    assert "checksum/config" in template["metadata"]["annotations"]
    assert of_kind(objects, "Deployment")["metadata"]["name"] == "scaler"


def test_the_account_and_its_roles_may_be_somebody_elses(rendered):
    """With an account and roles of one's own the chart makes neither, and the pods have that account."""
    objects = rendered(
        "--set=serviceAccount.create=false", "--set=serviceAccount.name=mine", "--set=rbac.create=false", ACT
    )
    kinds = {one["kind"] for one in objects}
    assert not [kind for kind in kinds if "Role" in kind]
    assert "ServiceAccount" not in kinds
    assert of_kind(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    named = rendered("--set=serviceAccount.name=mine")
    assert of_kind(named, "ServiceAccount")["metadata"]["name"] == "mine"
    bindings = [one for one in named if one["kind"].endswith("Binding")]
    assert {subject["name"] for one in bindings for subject in one["subjects"]} == {"mine"}


@pytest.mark.parametrize(
    ("flags", "ingress"),
    [
        ((), []),
        (("--set=networkPolicy.open=true",), [{"ports": [{"port": "http", "protocol": "TCP"}]}]),
        (
            ("--set=networkPolicy.from[0].podSelector.matchLabels.app=prometheus",),
            [
                {
                    "ports": [{"port": "http", "protocol": "TCP"}],
                    "from": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}],
                }
            ],
        ),
    ],
)
def test_metrics_are_closed_unless_somebody_is_named(rendered, flags, ingress):
    """The port of the metrics is for nobody by default; the kubelet's probes pass any policy."""
    assert of_kind(rendered(*flags), "NetworkPolicy")["spec"]["ingress"] == ingress


UI_FLAGS = (
    UI,
    "--set=ui.from[0].namespaceSelector.matchLabels.name=ingress",
    "--set=ui.ingress.enabled=true",
    "--set=ui.ingress.host=scaling.example.com",
    "--set=ui.ingress.className=nginx",
    "--set=ui.ingress.tlsSecret=scaling-tls",
)


def test_the_dashboard_is_off_and_reads_only(rendered):
    """By default there is none; enabled it is a container that may not write, behind Service, Ingress and policy."""
    without = rendered()
    assert len(of_kind(without, "Deployment")["spec"]["template"]["spec"]["containers"]) == 1
    assert "Ingress" not in {one["kind"] for one in without}
    closed = of_kind(rendered(UI), "NetworkPolicy")
    assert closed["spec"]["ingress"] == []
    objects = rendered(*UI_FLAGS)
    _, ui = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert ui["volumeMounts"] == [{"name": "records", "mountPath": "/var/lib/kubetide", "readOnly": True}]
    assert ui["securityContext"]["readOnlyRootFilesystem"]
    ingress = of_kind(objects, "Ingress")["spec"]
    (rule,) = ingress["rules"]
    (path,) = rule["http"]["paths"]
    service = next(
        one for one in objects if one["metadata"]["name"] == "kubetide-ui" and one["kind"] == "Service"
    )
    assert path["backend"]["service"] == {"name": "kubetide-ui", "port": {"name": "ui"}}
    assert service["spec"]["ports"] == [{"name": "ui", "port": 80, "targetPort": "ui", "protocol": "TCP"}]
    assert ingress["tls"] == [{"hosts": ["scaling.example.com"], "secretName": "scaling-tls"}]
    assert of_kind(objects, "NetworkPolicy")["spec"]["ingress"] == [
        {
            "ports": [{"port": "ui", "protocol": "TCP"}],
            "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        }
    ]


def test_the_dashboard_s_flags_are_those_of_the_command(rendered):
    """The container's arguments are read by `kubetide ui`."""
    _, ui = of_kind(rendered(UI), "Deployment")["spec"]["template"]["spec"]["containers"]
    command, *arguments = ui["args"]
    assert command == "ui"
    read = ui_command.make_context("ui", arguments)
    assert (read.params["kubernetes_access"], str(read.params["out"])) == (True, "/var/lib/kubetide")
    assert read.params["listen"] == f":{ui['ports'][0]['containerPort']}"


def test_helm_finds_nothing_to_say(helm):
    """`helm lint --strict` passes."""
    run = subprocess.run([helm, "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_monitor_asks_the_service(rendered):
    """The ServiceMonitor, whose kind no server here knows, chooses the Service by its labels and names its port."""
    objects = rendered("--set=serviceMonitor.enabled=true", "--set=serviceMonitor.labels.release=prometheus")
    monitor, service = of_kind(objects, "ServiceMonitor"), of_kind(objects, "Service")
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    assert endpoint["path"] == "/metrics"
    pod = of_kind(objects, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod.items()


def test_the_embedded_cluster_takes_the_chart(rendered, tmp_path):
    """kubectl applies the whole chart to the embedded cluster, strictly: accounts, roles, Services and policies too."""
    kubectl = find("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not built (python -m tools.plane build kubectl)")
    objects = rendered(ACT, *BOTH, *UI_FLAGS)
    file, config = tmp_path / "known.yaml", tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump_all(objects))

    async def main(clock):
        async with served(clock) as (_, server, connection):
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token=TOKEN, authority=authority))
            command = [kubectl, f"--kubeconfig={config}", f"--cache-dir={tmp_path}", "apply"]
            process = await asyncio.create_subprocess_exec(
                *command, "--validate=strict", f"--filename={file}", stdout=PIPE, stderr=PIPE
            )
            said, problems = await process.communicate()
            assert (process.returncode, problems.decode()) == (0, "")
            return sorted(said.decode().splitlines())

    said = run_real(main)
    assert len(said) == len(objects)
    assert all(line.endswith(" created") for line in said)
    assert {"configmap/kubetide created", "serviceaccount/kubetide created"} <= set(said)


@pytest.mark.parametrize(
    "flags",
    [(), (ACT,), (ACT, *BOTH), UI_FLAGS, (DEFINITIONS,)],
    ids=["advice", "acting", "both loops", "dashboard", "definitions"],
)
def test_a_real_api_server_takes_everything(helm, quiet_plane, tmp_path, flags):
    """Each object passes kube-apiserver's own validation, with unknown fields forbidden."""
    file = tmp_path / "all.yaml"
    file.write_text(render(helm, *flags))
    command = [find("kubectl"), "--kubeconfig", quiet_plane.kubeconfig, "apply", "--dry-run=server"]
    run = subprocess.run(
        [*command, "--validate=strict", "-f", file], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    said = run.stdout.splitlines()
    assert len(said) == len([one for one in yaml.safe_load_all(file.read_text()) if one])
    assert all(line.endswith("created (server dry run)") for line in said)

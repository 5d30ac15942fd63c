"""A person's session with kubectl against ``kubetide up --serve``.

Played by the kubectl on the PATH, and by every other one that ``KUBETIDE_KUBECTL`` names (paths,
separated by colons); skipped where there is none.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

SCENARIO = """
name: session
warmUp: 30s
nodeGroups:
  - {name: general, instanceType: m5.xlarge, min: 3, max: 3, bootTime: 10s}
pods: {imagePull: 1s, start: 1s, ready: 1s, stop: 1s}
manifests:
  - |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers: [{name: web, image: "web:1", resources: {requests: {cpu: 100m, memory: 128Mi}}}]
services:
  - deployment: web
    cpuSecondsPerRequest: 0.001
    load: {daily: {low: 10, peak: 20}}
"""

APP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {k: %s}
"""

# What is typed, and what the answer must match. NODE stands for a node's name.
SESSION = [
    ("version", "Server Version.*v1.36.0"),
    ("get nodes -o wide", r"general-\S+ +Ready +<none> .*EXTERNAL-IP|EXTERNAL-IP[^\n]*\n(general-\S+ +Ready.*\n){3}"),
    ("get pods", r"(web-\S+ +1/1 +Running +0 .*\n){2}"),
    ("get pods -o name", "(pod/web-\\S+\n){2}"),
    ("get deploy web -o yaml", "kind: Deployment\n"),
    ("get deploy web -o json", '"kind": "Deployment"'),
    ("get deploy web -o jsonpath={.spec.replicas}", "^2$"),
    ("describe node NODE", r"cpu +\d+m? \(\d+%\)"),
    ("describe deployment web", "Scaled up replica set web-"),
    ("create deployment shop --image=shop:1 --replicas=2", "deployment.apps/shop created"),
    ("create configmap settings --from-literal=a=b", "configmap/settings created"),
    ("apply -f APP1", "configmap/conf created"),
    ("apply -f APP2", "configmap/conf configured"),
    ("get configmap conf -o jsonpath={.data.k}", "^two$"),
    ("label deployment shop tier=x", "deployment.apps/shop labeled"),
    ("annotate deployment shop note=hello", "deployment.apps/shop annotated"),
    ('patch deployment shop -p {"spec":{"minReadySeconds":1}}', "deployment.apps/shop patched"),
    ('patch deployment shop --type=merge -p {"spec":{"replicas":3}}', "deployment.apps/shop patched"),
    ("scale deployment shop --replicas=4", "deployment.apps/shop scaled"),
    ("rollout status deployment/shop --timeout=30s", "successfully rolled out"),
    ("wait --for=condition=Available deployment/shop --timeout=30s", "condition met"),
    ("autoscale deployment shop --min=2 --max=5 --cpu-percent=50", "horizontalpodautoscaler.autoscaling/shop autoscaled"),
    ("get hpa", r"shop +Deployment/shop +(cpu: )?\S+/50% +2 +5 "),
    ("describe hpa shop", "Max replicas: +5"),
    ("top pods", r"web-\S+ +\d+m +\d+Mi"),
    ("top nodes", r"general-\S+ +\d+m +\d+% +\d+Mi"),
    ("explain deployment.spec.replicas", "(?i)replicas.*<integer>"),
    ("api-resources", r"deployments +deploy +apps/v1 +true +Deployment"),
    ("auth can-i create pods", "^yes"),
    ("cordon NODE", "cordoned"),
    ("get node NODE", "Ready,SchedulingDisabled"),
    ("drain NODE --ignore-daemonsets --force --timeout=60s", "node/NODE (drained|evicted)"),
    ("uncordon NODE", "uncordoned"),
    ("get events", "ScalingReplicaSet +deployment/shop"),
    ("delete configmap settings conf", 'configmap "conf" deleted'),
    ("delete deployment shop", 'deployment.apps "shop" deleted'),
    ("get all", "deployment.apps/web"),
]  # fmt: skip


def kubectls():
    """Every kubectl there is; those that are named must be there."""
    named = [path for path in os.environ.get("KUBETIDE_KUBECTL", "").split(":") if path]
    found = shutil.which("kubectl")
    return [*named, *([found] if found else [])]


@contextmanager
def served(folder):
    """Starts ``kubetide up --serve`` and gives the path of its kubeconfig."""
    scenario = folder / "session.yaml"
    scenario.write_text(SCENARIO)
    code = "from kubetide.cli.main import main; main()"
    out = folder / "out"
    command = [sys.executable, "-c", code, "up", str(scenario), "--speed", "5", "--out", str(out), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert select.select([run.stderr], [], [], 60)[0], "nothing was said for a minute"
            assert "kubectl --kubeconfig" in run.stderr.readline()
            yield out / "kubeconfig"
        finally:
            run.send_signal(signal.SIGINT)
            rest = run.stderr.read()
        assert (run.wait(30), rest) == (0, "")
        assert not (out / "kubeconfig").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "kubectl", kubectls() or [pytest.param("", marks=pytest.mark.skip("no kubectl on the PATH"))]
)
def test_a_session(kubectl, tmp_path):
    """Every step of the session is answered as a real cluster answers it."""
    for number, word in ((1, "one"), (2, "two")):
        (tmp_path / f"app{number}.yaml").write_text(APP % word)
    with served(tmp_path) as config:
        assert config.stat().st_mode & 0o777 == 0o600
        environment = {"KUBECONFIG": str(config), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}

        def typed(line, timeout=90):
            run = subprocess.run(
                [kubectl, *line.split(" ")],
                capture_output=True,
                text=True,
                env=environment,
                timeout=timeout,
                check=False,
            )
            return run.returncode, run.stdout, run.stderr

        ready = "wait --for=condition=Available deployment/web --timeout=60s"
        assert typed(ready)[0] == 0
        node = typed("get nodes -o name")[1].split()[0].removeprefix("node/")
        for line, expected in SESSION:
            if line.startswith("top"):
                wait_for_usage(typed)
            words = line.replace("NODE", node)
            words = re.sub(r"APP(\d)", rf"{tmp_path}/app\1.yaml", words)
            code, said, error = typed(words)
            assert code == 0, f"{line}: {said}{error}"
            assert re.search(expected.replace("NODE", node), said), f"{line}: {said}{error}"


def wait_for_usage(typed):
    """Usage is there from the first step of the load on."""
    for _ in range(200):
        code, said, _ = typed("top pods")
        if code == 0 and "web-" in said:
            return
        time.sleep(0.2)
    raise AssertionError("nobody uses anything")

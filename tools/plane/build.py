"""What can be built, and where it lies: one folder in the cache per content of the module and version of Go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.plane.toolchain import BuildError, Go, cache, find_go

__all__ = ["KUBERNETES", "TARGETS", "BuildError", "build", "find"]

KUBERNETES = "1.36.2"

MODULE = Path(__file__).with_name("go")
_VPA_PROGRAMS = ("vpa-recommender", "vpa-updater", "vpa-admission-controller")
_OWN_MODULES = {name: Path(__file__).with_name(name) for name in ("helm", "kube-state-metrics", "kwok")}
_OWN_MODULES |= dict.fromkeys(_VPA_PROGRAMS, Path(__file__).with_name("vpa"))
"""Programs with modules of their own: they need other versions of Kubernetes' libraries."""

STAGES = "kwok-stages.yaml"
"""Lies beside kwok: what it does to nodes and pods, from its own module. Without such it does not start."""

_STAGE_FOLDERS = ("node/fast", "node/heartbeat-with-lease", "pod/fast")

_KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
_PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    **{name: f"k8s.io/kubernetes/cmd/{name}" for name in _KUBERNETES_PROGRAMS},
    "clients": "./clients",
    "holder": "./holder",
    "informer": "./informer",
    "cloud": "./cloud",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "kube-state-metrics": "k8s.io/kube-state-metrics/v2",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    **{
        name: f"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/{name.removeprefix('vpa-')}"
        for name in _VPA_PROGRAMS
    },
}

TARGETS: dict[str, tuple[str, ...]] = {
    "kubectl": ("kubectl",),
    "clients": ("clients", "cloud", "holder", "informer"),
    "helm": ("helm",),
    "kube-state-metrics": ("kube-state-metrics",),
    "kwok": ("kwok",),
    "vpa": _VPA_PROGRAMS,
    "control-plane": ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
}
"""Programs of each target, by the name of their file."""

_MAJOR, _MINOR, _ = KUBERNETES.split(".")
_STAMP = "k8s.io/component-base/version"
_LINK = (
    f"-s -w -X {_STAMP}.gitVersion=v{KUBERNETES} -X {_STAMP}.gitMajor={_MAJOR} -X {_STAMP}.gitMinor={_MINOR}"
)


def build(target: str) -> list[Path]:
    """Build the programs of a target that are not in the cache, and return the paths of all.

    Safe to call from several processes at once. Raises BuildError.
    """
    go = find_go()
    paths = {name: _home(name, go.version) / name for name in TARGETS[target]}
    with _one_at_a_time():
        missing = {name: path for name, path in paths.items() if not path.exists()}
        if missing:
            print(f"building {', '.join(missing)} with Go {go.version}", file=sys.stderr)
            _compile(go, missing)
    return list(paths.values())


def find(name: str) -> Path | None:
    """Return a program that is there already, None if it is not; builds nothing and needs no Go.

    The folder that ``KUBEBUILDER_ASSETS`` names comes first, then the cache.
    """
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named and (Path(named) / name).exists():
        return Path(named) / name
    built = cache().glob(f"{_content(name)}-go*/{name}")
    return max(built, key=lambda path: _numbers(path.parent.name.partition("-go")[2]), default=None)


def _compile(go: Go, programs: dict[str, Path]) -> None:
    """Compile with one command, so that what the programs share is compiled once. All are of one module."""
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        # A folder as output names each program after its package.
        command = [go.command, "build", "-buildvcs=false", f"-ldflags={_LINK}", "-o", f"{folder}/"]
        run = subprocess.run(
            [*command, *(_PACKAGES[name] for name in programs)],
            cwd=_module_of(next(iter(programs))),
            env={**os.environ, "GOTOOLCHAIN": "local"},
            check=False,
        )
        if run.returncode:
            raise BuildError(f"{go.command} build failed: its output is above")
        if "kwok" in programs:
            _write_stages(go, programs["kwok"].with_name(STAGES))
        for name, path in programs.items():
            made = Path(folder) / _name_of_package(_PACKAGES[name])
            path.parent.mkdir(exist_ok=True)
            made.rename(path)


def _name_of_package(package: str) -> str:
    """Return how Go names the program: after the last part of the package's path that is no version."""
    return re.sub(r"/v\d+$", "", package).rpartition("/")[2]


def _write_stages(go: Go, path: Path) -> None:
    """Join the stages that kwok's module brings into one file."""
    command = [go.command, "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        said = subprocess.run(
            command, cwd=_OWN_MODULES["kwok"], env=environment, check=True, capture_output=True, text=True
        )
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error
    stages = Path(said.stdout.strip()) / "kustomize" / "stage"
    found = [
        file.read_text(encoding="utf-8")
        for folder in _STAGE_FOLDERS
        for file in sorted((stages / folder).glob("*.yaml"))
        if file.name != "kustomization.yaml"
    ]
    if not found:
        raise BuildError(f"{stages} holds no stages in {', '.join(_STAGE_FOLDERS)}: has kwok moved them?")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n---\n".join(found), encoding="utf-8")


def _module_of(name: str) -> Path:
    return _OWN_MODULES.get(name, MODULE)


def _home(name: str, go_version: str) -> Path:
    return cache() / f"{_content(name)}-go{go_version}"


def _content(name: str) -> str:
    """Return a short digest of everything that the program is made of."""
    module = _module_of(name)
    files = [module / "go.mod", module / "go.sum"]
    if _PACKAGES[name].startswith("./"):
        files += sorted((module / _PACKAGES[name]).rglob("*.go"))
    digest = hashlib.sha256(_LINK.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

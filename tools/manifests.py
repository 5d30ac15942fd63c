"""``python -m tools.manifests``: renders the plain manifests in ``deploy/manifests`` from the chart, with Helm."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from pathlib import Path

import yaml
from tools.plane.build import find

from kubetide.elastic import definitions as elastic
from kubetide.runtime.configuration.run_settings import setting_names
from kubetide.vertical import definitions as vertical

DEPLOY = Path(__file__).parents[1] / "deploy"
CHART = DEPLOY / "chart"
MANIFESTS: dict[str, tuple[str, ...]] = {
    "advice.yaml": (),
    "acting.yaml": ("--set=config.act=true",),
}
"""The flags of each file; all else is the chart's defaults."""

_HEADER = "# Rendered from deploy/chart by `python -m tools.manifests`; do not edit.\n"


_CRDS_HEADER = "# Written by `python -m tools.manifests`; do not edit.\n"
CRDS = CHART / "crds" / "elasticworkloads.yaml"
VPA_CRDS = CHART / "definitions" / "vpa.yaml"


class RenderError(Exception):
    """Helm refused the chart or its values; the text is Helm's message."""


def render(helm: Path, *flags: str) -> str:
    """Return the chart's objects as YAML, of a release ``kubetide`` in ``kube-system``. Raises RenderError."""
    command = [
        str(helm),
        "template",
        "kubetide",
        str(CHART),
        "--namespace=kube-system",
        "--kube-version=1.36",
    ]
    run = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RenderError(run.stderr.strip())
    return run.stdout


def manifest(helm: Path, name: str) -> str:
    """Return what a file of ``deploy/manifests`` holds."""
    return _HEADER + render(helm, *MANIFESTS[name])


def crds() -> str:
    """Return the definition of our own kind, which Helm installs with the chart."""
    (definition,) = elastic.definitions()
    return _CRDS_HEADER + str(yaml.safe_dump(definition, sort_keys=False, width=110))


def vpa_crds() -> str:
    """Return the definitions of the kinds of VPA objects, which the chart's templates have where a value asks for them."""
    found = copy.deepcopy(vertical.definitions())
    for one in found:
        # Without its definition a cluster has no VPA object any more: they outlive the release.
        one["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep"
    return _CRDS_HEADER + str(yaml.safe_dump_all(found, sort_keys=False, width=110))


def schema() -> str:
    """Return the chart's schema of values, with the settings that there are as the names under ``config``."""
    names = ", ".join(f'"{name}"' for name in setting_names())
    text = (CHART / "values.schema.json").read_text(encoding="utf-8")
    return re.sub(r'"propertyNames": \{"enum": \[.*?\]\}', f'"propertyNames": {{"enum": [{names}]}}', text)


def main() -> int:
    (CHART / "values.schema.json").write_text(schema(), encoding="utf-8")
    CRDS.write_text(crds(), encoding="utf-8")
    VPA_CRDS.write_text(vpa_crds(), encoding="utf-8")
    helm = find("helm")
    if helm is None:
        print("helm is not built: python -m tools.plane build helm", file=sys.stderr)
        return 1
    for name in MANIFESTS:
        (DEPLOY / "manifests" / name).write_text(manifest(helm, name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

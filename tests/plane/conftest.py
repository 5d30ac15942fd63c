"""The fixtures that the tests of the whole loop share."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from tests.conftest import skip_without_plane
from tests.grouping import PLANES
from tests.plane.running import running_plane
from tests.plane.scheduling import PATIENCE
from tests.plane.towns import audited_plane
from tools.manifests import render
from tools.plane.build import find


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """A control plane that writes down every request; skips without its programs."""
    skip_without_plane()
    return PLANES.begin(audited_plane(tmp_path_factory.mktemp("audited")))


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """A control plane that takes nodes for ready though nobody reports for them."""
    skip_without_plane()
    with running_plane(tmp_path_factory.mktemp("patient"), manager_flags=PATIENCE) as plane:
        yield plane


@pytest.fixture
def roles_of_the_chart(audited, helm, tmp_path):
    """The rights of the chart's account in a release that acts with both loops."""
    values = "config.controllers={horizontal,nodes},config.cloud-provider=mine,config.act=true,options.nominatePods=true"
    targets = "rbac.scaleTargets[0].group=stable.example.com,rbac.scaleTargets[0].resource=crontabs"
    rendered = yaml.safe_load_all(render(helm, f"--set={values},{targets}"))
    roles = [one for one in rendered if one and "Role" in one["kind"]]
    file = tmp_path / "roles.yaml"
    file.write_text(yaml.safe_dump_all(roles))
    kubectl = [find("kubectl"), "--kubeconfig", audited.kubeconfig]
    subprocess.run([*kubectl, "apply", "-f", file], check=True, capture_output=True)
    yield
    subprocess.run([*kubectl, "delete", "--wait=false", "-f", file], check=True, capture_output=True)

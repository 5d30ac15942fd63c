"""The pages of the providers name the rights that their calls need, and the errors that they classify."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.clouds.fakes.alibaba import FakeAlibaba
from tests.clouds.fakes.tencent import FakeTencent

DOCS = Path(__file__).parents[2] / "docs"
SOURCES = Path(__file__).parents[2] / "src" / "kubetide" / "clouds"
# A method of Compute Engine, and the right that it needs.
GCE_RIGHTS = {
    "/createInstances": "compute.instanceGroupManagers.update",
    "/deleteInstances": "compute.instanceGroupManagers.update",
    "/resize": "compute.instanceGroupManagers.update",
}


def rights(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.search(r"## Rights\n\n```text\n(.*?)```", text, re.DOTALL)[1].split()


def test_rights_of_tencent():
    """The page lists each action that the API's server knows; these are the ones that the provider requests."""
    actions = [re.fullmatch(r"_(as|cvm|vpc)_(\w+)", name) for name in vars(FakeTencent)]
    assert rights("cloud-tencent.md") == sorted(f"{one[1]}:{one[2]}" for one in actions if one)
    asked = re.findall(
        r'"((?:Create|Delete|Describe|Modify|Remove)\w+)"', (SOURCES / "tencent" / "api.py").read_text()
    )
    assert sorted(set(asked)) == sorted(one.partition(":")[2] for one in rights("cloud-tencent.md"))


def test_rights_of_alibaba():
    """The page lists each action that the API's server knows; these are the ones that the provider requests."""
    actions = [name[1:] for name in vars(FakeAlibaba) if re.fullmatch(r"_[A-Z]\w+", name)]
    named = rights("cloud-alibaba.md")
    assert sorted(one.partition(":")[2] for one in named) == sorted(actions)
    asked = re.findall(
        r'"((?:Create[A-Z]|Delete|Describe|Enable|Scale[A-Z]|Remove)\w+)"',
        (SOURCES / "alibaba" / "api.py").read_text(),
    )
    assert sorted(set(asked)) == sorted(actions)


def test_rights_of_gce():
    """Each collection of the client's paths has its right on the page, and no other."""
    source = (SOURCES / "gce" / "api.py").read_text()
    collections = set(
        re.findall(r"/(autoscalers|instance\w+|machineTypes|regions|operations)(?:/|\")", source)
    )
    named = {one.split(".")[1] for one in rights("cloud-gce.md")}
    assert {re.sub("(zone|region)Operations", "operations", one) for one in named} == collections
    assert set(GCE_RIGHTS.values()) <= set(rights("cloud-gce.md"))
    text = (DOCS / "cloud-gce.md").read_text()
    for collection in ("instanceGroupManagers", "instanceTemplates"):
        assert {f"`compute.{collection}.create`", f"`compute.{collection}.delete`"} <= set(
            re.findall(r"`\S+`", text)
        )


def test_rights_of_azure():
    """Each kind of the client's paths has its right on the page; operations, too, whose URLs the API gives."""
    source = (SOURCES / "azure" / "api.py").read_text()
    assert set(re.findall(r'"(GET|PUT|POST|PATCH|DELETE)"', source)) == {"GET", "PUT", "POST", "DELETE"}
    assert "`Microsoft.Compute/virtualMachineScaleSets/delete`" in (DOCS / "cloud-azure.md").read_text()
    kinds = {"/".join(one.split("/")[:2]) for one in rights("cloud-azure.md")}
    operations = "Microsoft.Compute/locations"
    assert set(re.findall(r"/(Microsoft\.\w+/\w+)", source)) | {operations} == kinds


@pytest.mark.parametrize("page", ["cloud-gce.md", "cloud-azure.md", "cloud-tencent.md", "cloud-alibaba.md"])
def test_pages_say_what_each_error_means(page):
    """Each page has the four things that a refusal can mean, in a table."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert {"out of capacity", "quota", "permission"} <= set(re.findall(r"\| ([a-z ]+) \|", text))

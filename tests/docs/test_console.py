"""Every command of the leading pages is run, and prints what the page shows."""

from __future__ import annotations

import re

import click
import pytest
from tests.docs.console import (
    ON_A_CLUSTER,
    Played,
    blocks,
    check_on_cluster,
    cli,
    commands,
    mentioned,
    parse,
    pattern,
)
from tests.docs.site import ROOT, led_pages, nav_pages
from tests.docs.tables import DOCS

from kubetide.ports.errors import KubetideError

PAGES = {name: (DOCS / name).read_text(encoding="utf-8") for name in led_pages()}
PAGES["README.md"] = (ROOT / "README.md").read_text(encoding="utf-8")


def has_commands(page):
    return any(language == "console" and not title for language, title, _ in blocks(page))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return Played(tmp_path_factory.mktemp("played"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if has_commands(page)])
def test_commands_print_what_the_page_shows(name, played, tmp_path):
    """In order, in one folder, with nothing but what the page itself has made."""
    wrong = played.page(PAGES[name], tmp_path / "page")
    assert not wrong, "\n".join(("printed now, and not as the page shows it:", *wrong))


@pytest.mark.parametrize("name", list(PAGES))
def test_commands_of_a_cluster_can_be_parsed(name):
    """Their flags and values exist; every block with a prompt is of one of the two sorts."""
    for language, title, body in blocks(PAGES[name]):
        if language == "console" and title:
            assert title == ON_A_CLUSTER
            check_on_cluster(body)
        else:
            assert language == "console" or "$ kubetide" not in body


@pytest.mark.parametrize("name", [name for name in nav_pages() if name not in PAGES])
def test_commands_of_all_other_pages_can_be_parsed(name):
    """Their flags and values exist too; a command that shows an error may be wrong."""
    for arguments in mentioned((DOCS / name).read_text(encoding="utf-8")):
        parse(cli, arguments)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda path: path.stem)
def test_commands_that_an_example_begins_with_can_be_parsed(path):
    """Their flags and values exist; what stands after two blanks says what the command shows."""
    for command in re.findall(
        r"^#   kubetide (\S+(?: \S+)*)", path.read_text(encoding="utf-8"), re.MULTILINE
    ):
        parse(cli, command.split())


def test_commands_are_found_in_fenced_and_indented_blocks():
    """Commands are found with and without a prompt, up to a pipe; one followed by its error is left out."""
    page = "```console\n$ kubetide explain hpa a \\\n  --at 12:00 | head\n$ kubetide run --no\nkubetide: no\n```\n    kubetide plan  # now\n"
    assert mentioned(page) == [["explain", "hpa", "a", "--at", "12:00"], ["plan"]]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("kubetide run --no-such-flag=1", "no-such-flag"),
        ("kubetide run --scan-interval=soon", "soon"),
        ("kubetide explain hpa web --when 12:00", "--when"),
        ("kubetide handover --to nobody", "nobody"),
        ("kubetide cluster-autoscaler --cloud-provider=aws --no-such-flag", "no-such-flag"),
        ("helm install kubetide deploy/chart --set imag.repository=a", "imag"),
        ("helm upgrade kubetide deploy/chart --set config.scan-intervall=1s", "scan-intervall"),
        ("kubectl apply -f deploy/manifests/none.yaml", "none.yaml"),
        ("kubectl exec deployment/kubetide -- python -m kubetide status --ouput /var/lib", "--ouput"),
        ("kubetidy run", "kubetidy"),
    ],
)
def test_a_wrong_command_is_found(line, named):
    """A flag, a value, a chart's key or a file that does not exist."""
    with pytest.raises((click.UsageError, KubetideError, AssertionError)) as raised:
        check_on_cluster(f"$ {line}\n")
    assert named in str(raised.value)


def test_an_ellipsis_matches_anything_and_the_rest_is_compared():
    """`…` alone is any number of lines, within a line any text."""
    [command] = commands("$ a \\\n  b\none\n…\nlast in … s\n")
    assert command.text == "a \\\n  b"
    assert pattern(command.shown).fullmatch("one\ntwo\nthree\nlast in 3 s\n")
    assert pattern(command.shown).fullmatch("one\nlast in 3 s\n")
    assert not pattern(command.shown).fullmatch("one\ntwo\nlast in 3 s and more\n")
    assert not pattern(command.shown).fullmatch("last in 3 s\n")

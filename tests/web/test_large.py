"""5,000 nodes and 2,000 workloads: pages stay small, as rows are bounded and the rest is found by name."""

from __future__ import annotations

import copy
import subprocess
import sys

import msgspec
import pytest
from selenium.webdriver.support.ui import WebDriverWait
from tests.browsers import chromium
from tests.simulate.worlds import small

from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.run import run_simulation
from kubetide.web.history import History

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NODES, HPAS = 5_000, 2_000
MOST_ELEMENTS = 12_000
MOST_CHARACTERS = 600_000
PATIENCE_S = 60


def renamed(one, old, new):
    """A copy with one word in the place of another, wherever it occurs."""
    return msgspec.json.decode(msgspec.json.encode(one).replace(old.encode(), new.encode()))


def many_hpas(state):
    for field in ("hpas", "scales", "statuses"):
        (one,) = state[field]
        names = [f"web-{number:04d}" for number in range(HPAS)]
        # Each with a selector of its own: in no real cluster do two thousand HPAs select the same pods.
        state[field] = [renamed(renamed(one, '"web"', f'"{name}"'), "=web", f"={name}") for name in names]
    state["memory"] = []


def many_nodes(state):
    first = state["nodes"][0]
    name = first["metadata"]["name"]
    (group,) = state["groups"]
    machine = copy.deepcopy(next(one for one in group["instances"] if one["providerID"].endswith(name)))
    names = [f"{name}-{number:04d}" for number in range(NODES)]
    state["nodes"] = [renamed(first, name, one) for one in names]
    group["instances"] = [renamed(machine, name, one) for one in names]
    group |= {"maxSize": 2 * NODES, "targetSize": NODES}
    state["pods"] = []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records of one tick of each loop, of a large cluster."""
    made, out = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("large")
    run_simulation(small(duration="1m"), base=made, out=made, seed=1, warn=pytest.fail)
    writer = RecordWriter(out, warn=pytest.fail)
    writer.start()
    for loop, grow in (("horizontal", many_hpas), ("nodes", many_nodes)):
        first = next(read_records(made, loop))
        state = msgspec.json.decode(bytes(first.state))
        grow(state)
        encoded = msgspec.Raw(msgspec.json.encode(state))
        writer.write(msgspec.structs.replace(first, state=encoded, reasons=()))
    writer.close()
    return out


@pytest.fixture(scope="module")
def browser(folder, tmp_path_factory):
    command = [sys.executable, "-m", "kubetide", "ui", "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[1]
        for started in chromium(tmp_path_factory.mktemp("profile")):
            started.get(address)
            yield started, address.partition("?")[0].rstrip("/")
        process.terminate()


def test_all_of_it_is_known(folder):
    """Every node and HPA can be asked about, and answers."""
    history = History(folder)
    objects = history.objects("")
    assert (len(objects["node"]), len(objects["hpa"])) == (NODES, HPAS)
    assert history.explain("node", objects["node"][-1], "", "").lines
    status = history.status("")
    assert len(status.tables["hpas"]) == HPAS
    assert status.tables["node groups"][0]["ready"] == NODES


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/", "and 1800 more: find them by name"),
        ("/objects", "and 4800 more: find them by name"),
        ("/objects?q=0042", "web-0042"),
        ("/nodegroup/general", "node group general"),
        ("/hpa/default/web-1999", "HPA default/web-1999"),
        ("/decisions", "Decisions"),
        ("/ahead", "What is to come"),
    ],
)
def test_pages_stay_small(browser, path, words):
    """No page has more than a maximum of elements, however many objects there are."""
    one, address = browser
    one.get(address + path)
    WebDriverWait(one, PATIENCE_S).until(lambda seen: words in seen.find_element("css selector", "main").text)
    elements, characters = one.execute_script(
        "return [document.querySelectorAll('*').length, document.documentElement.outerHTML.length]"
    )
    assert elements < MOST_ELEMENTS
    assert characters < MOST_CHARACTERS

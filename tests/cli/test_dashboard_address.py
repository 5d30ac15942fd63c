"""Questions about a run that is elsewhere: the address of its dashboard in the place of its folder."""

from __future__ import annotations

import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder of records, and the address of its dashboard."""
    out = tmp_path_factory.mktemp("run")
    run_simulation(small(), base=out, out=out, seed=3, warn=lambda _: None)
    command = [sys.executable, "-m", "kubetide", "ui", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield str(out), process.stdout.readline().split()[1]
        process.terminate()


def said(words, out):
    result = CliRunner().invoke(cli, [*words.split(), "--out", out])
    assert result.exit_code == 0, result.exception or result.output
    return result.stdout


@pytest.mark.parametrize(
    "words",
    [
        "explain hpa web",
        "explain hpa web --at 00:05 -o json",
        "explain deploy/web -o wide",
        "explain nodegroup general",
        "status --at 00:05 -o yaml",
        "plan --ahead 6h",
    ],
)
def test_answers_are_those_of_the_folder(run, words):
    """The same text and the same data, wherever the run is."""
    folder, address = run
    assert said(words, address) == said(words, folder)


def test_the_page_of_all_has_the_same_tables(run):
    """Only the commands that it offers differ: they would have the token in them."""
    folder, address = run
    assert said("status", address) == said("status", folder).replace(f" --out {folder}", "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("explain hpa wbe", "did you mean default/web?"),
        ("explain hpa", "which hpa? write hpa NAME or hpa/NAME; there are default/web"),
        ("explain deploy nix", "nothing scales Deployment default/nix"),
        ("status --at 25:99", "is neither a time"),
    ],
)
def test_errors_are_those_of_the_server(run, words, error):
    """The sentence of the dashboard, and no trace of a program."""
    result = CliRunner().invoke(cli, [*words.split(), "--out", run[1]])
    assert error in f"{result.exception} {result.output}"


def test_who_may_not_look_and_who_is_not_there(run):
    """A wrong token and a server that is gone are told apart."""
    wrong = CliRunner().invoke(cli, ["status", "--out", f"{run[1]}x"])
    assert "answers 401: no token, or a wrong one" in str(wrong.exception)
    gone = CliRunner().invoke(cli, ["status", "--out", "http://127.0.0.1:1/?token=x"])
    assert "no dashboard answers at http://127.0.0.1:1" in str(gone.exception)
    assert "token=x" not in str(gone.exception)


def test_no_redirect_is_followed_with_the_token():
    """The token is for the server that was named: where another is meant, its address is said."""
    asked = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(301)
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/other")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/?token=secret"
        result = CliRunner().invoke(cli, ["status", "--out", address])
        server.shutdown()
    assert "answers 301" in str(result.exception)
    assert "/other: use that" in str(result.exception)
    assert len(asked) == 1

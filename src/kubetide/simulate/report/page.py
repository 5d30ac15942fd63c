"""Puts the page together: markup, style, scripts and data in one file.

Nothing is fetched: a content security policy forbids it, and allows just the scripts and the style
that were put in. Names from the run reach the page only as JSON, and the page writes them as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from pathlib import Path

import msgspec

from kubetide.simulate.report.series import Forecasts, Json, no_forecasts, report_data
from kubetide.simulate.timeline import Summary, Timeline

_SHARED = ("shell.js", "format.js", "plots.js", "marks.js", "decisions.js")
_OWN = {"report": ("charts.js", "main.js"), "what-if": ("what-if.js",), "sweep": ("sweep.js",)}
"""The scripts that a page has beside those of all; its markup is the file of its name."""

_IN_HTML = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def write_report(
    path: Path, name: str, timeline: Timeline, summary: Summary, forecasts: Forecasts = no_forecasts
) -> None:
    """Write the report of a run to one HTML file. Raises OSError."""
    path.write_text(render_page(name, report_data(name, timeline, summary, forecasts)), encoding="utf-8")


def render_page(title: str, data: Json, *, page: str = "report") -> str:
    """Return a page, ``report``, ``what-if`` or ``sweep``, with the data in it."""
    style = _uplot_notice() + _static("uPlot.min.css") + "\n" + _static("report.css")
    plotting = _uplot_notice() + _after_banner(_static("uPlot.iife.min.js"))
    own = '"use strict";\n' + "\n".join(_static(name) for name in (*_SHARED, *_OWN[page]))
    parts = {
        "TITLE": html.escape(f"{title} · kubetide"),
        "POLICY": html.escape(_policy(style, plotting, own)),
        "STYLE": style,
        "DATA": json_in_html(data),
        "PLOTTING": plotting,
        "SCRIPT": own,
    }
    # The template is cut once, so that nothing put in is looked through for further places.
    pieces = _static(f"{page}.html").split("@@")
    return "".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def json_in_html(data: Json) -> str:
    """Return JSON that can stand in a script element: no character of it can end the element."""
    return msgspec.json.encode(data).decode().translate(_IN_HTML)


def _policy(style: str, *scripts: str) -> str:
    allowed = " ".join(_hash(script) for script in scripts)
    return f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _static(name: str) -> str:
    folder = resources.files("kubetide.simulate.report") / "static"
    return (folder / name).read_text(encoding="utf-8")


def _uplot_notice() -> str:
    return f"/* uPlot\n\n{_static('uPlot.LICENSE').strip()}\n*/\n"


def _after_banner(script: str) -> str:
    """Leave out the first comment: it holds a web address, and a report names none."""
    return script.partition("*/")[2].lstrip()

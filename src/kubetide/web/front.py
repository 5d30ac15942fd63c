"""The front end: one page, one script and one style sheet, served as they are or combined into one file without a server.

Of a file nothing is fetched: a content security policy forbids it, and allows just the script and the style that were put
in. Names from a run reach it only as JSON, and the scripts write them as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from typing import Any, Final

import msgspec

Json = dict[str, Any]

_SCRIPTS: Final = ("base", "file", "marks", "plots", "past", "pages", "app")
"""What every page needs; behind it stands the script that begins with one: ``main``, ``what-if`` or ``sweep``."""

_LINKS: Final = (
    '<link rel="icon" href="/icon.svg" type="image/svg+xml">\n<link rel="stylesheet" href="/style.css">'
)
_LOADS: Final = '<script src="/app.js"></script>'
_TITLE: Final = "<title>kubetide</title>"

_IN_HTML: Final = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


def script(page: str = "main") -> str:
    """Return the whole script of a page."""
    return '"use strict";\n' + "\n".join(static(f"{name}.js") for name in (*_SCRIPTS, page))


def static(name: str) -> str:
    """Return a file of the front end."""
    return (resources.files("kubetide.web") / "static" / name).read_text(encoding="utf-8")


def as_file(title: str, data: Json, *, page: str = "main") -> str:
    """Return the page as one file with its answers, by the name of the query."""
    style, code = static("style.css"), script(page)
    # Cut before anything is put in, so that nothing of it is looked through.
    head, _, rest = static("index.html").partition(_LINKS)
    body, _, tail = rest.partition(_LOADS)
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    return "".join(
        (
            head.replace(_TITLE, f"<title>{html.escape(f'{title} · kubetide')}</title>"),
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n',
            f"<style>{style}</style>",
            body,
            f'<script type="application/json" id="kubetide-data">{json_in_html(data)}</script>\n',
            f"<script>{code}</script>",
            tail,
        )
    )


def json_in_html(data: Json) -> str:
    """Return JSON that can stand in a script element: no character of it can end the element."""
    return msgspec.json.encode(data).decode().translate(_IN_HTML)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

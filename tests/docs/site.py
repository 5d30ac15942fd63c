"""The nav of the site, and the headings and links of its pages, without MkDocs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from tests.docs.tables import DOCS

ROOT = DOCS.parent
CONFIG = ROOT / "mkdocs.yml"
LED = (
    "index.md",
    "usage.md",
    "capacity.md",
    "troubleshooting.md",
    "start/",
    "questions/",
    "loops/",
    "migrate/",
)
"""Pages made for those who come: all their commands are run."""


def nav_pages(entries=None):
    """Return the pages of the nav from its first to its last."""
    found = []
    for entry in yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["nav"] if entries is None else entries:
        [(_, value)] = entry.items()
        found += [value] if isinstance(value, str) else nav_pages(value)
    return found


def led_pages():
    """Return those of the nav that lead a new reader."""
    return [name for name in nav_pages() if name.startswith(LED)]


def prose(text):
    """Return a page without its fenced blocks and spans of code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(text):
    """Return the anchors of a page's headings, as Python-Markdown makes them."""
    found = set()
    without_blocks = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6} (.+)$", without_blocks, re.MULTILINE):
        bare = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", bare).strip().lower())
        number = 1
        unique = slug
        while unique in found:
            unique, number = f"{slug}_{number}", number + 1
        found.add(unique)
    return found


def links(text):
    """Return the targets of a page's links, those of pictures too."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(text))


def broken(path: Path, root: Path):
    """Return the links of a page that lead nowhere, or out of a root."""
    text = path.read_text(encoding="utf-8")
    found = []
    for link in links(text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve() if target else path
        if (
            not page.exists()
            or not page.is_relative_to(root)
            or (anchor and anchor not in anchors(page.read_text(encoding="utf-8")))
        ):
            found.append(link)
    return found

"""The pages of documentation as data, and the tables in them that are made from the code.

``python -m tests.docs.tables`` writes those tables anew, and the pages of ``reference``; tests fail while one is stale.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from tests.docs.reference import reference_pages

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.loop import LoopEntry, explaining, loop_entries
from kubetide.runtime.upstream import cluster_autoscaler_flags


def folder_of(entry: LoopEntry[Any]) -> str:
    """Return the folder of a loop below the package: the one that its ``entry`` module is in."""
    return "/".join(entry.make.__module__.split(".")[1:-1])


DOCS = Path(__file__).parents[2] / "docs"
SRC = Path(__file__).parents[2] / "src" / "kubetide"
REASONS = DOCS / "reasons.md"
MAP = DOCS / "architecture.md"
CLUSTER_AUTOSCALER = DOCS / "cluster-autoscaler.md"
VOCABULARIES: dict[str, Vocabulary] = {
    folder_of(entry): entry.vocabulary for entry in loop_entries() if entry.vocabulary.codes
} | {"simulate/playground": explaining("playground").vocabulary}
"""By folder of the loop."""

_BLOCK = "<!-- made from the code: {} -->\n", "<!-- end -->"


def rows(text: str) -> list[list[str]]:
    """Return the cells of all table rows of a page, without heads and rules."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|---"):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def section(page: str, heading: str) -> str:
    """Return the text under a heading, down to the next one of its rank or above."""
    rank = heading.split(" ", maxsplit=1)[0]
    tail = page.split(f"{heading}\n", 1)[1]
    return re.split(rf"^#{{2,{len(rank)}}} ", tail, maxsplit=1, flags=re.MULTILINE)[0]


def vocabulary_table(vocabulary: Vocabulary) -> str:
    """Return the table of a vocabulary: code, sentence, and whether something was done."""
    lines = ["| Code | Done | Sentence |", "|---|---|---|"]
    for code in vocabulary.codes:
        bare = Reason(code, "<subject>")  # fields that are missing show as <name>
        done = "yes" if vocabulary.is_action(bare) else ""
        sentence = re.sub(r"<(\w+)>", r"{\1}", vocabulary.text(bare))
        lines.append(f"| `{code}` | {done} | {sentence} |")
    return "\n".join(lines) + "\n"


def with_tables(page: str) -> str:
    """Return the page of reasons with its tables as the code has them."""
    for name, vocabulary in VOCABULARIES.items():
        begin, end = _BLOCK[0].format(name), _BLOCK[1]
        head, rest = page.split(begin, 1)
        page = head + begin + vocabulary_table(vocabulary) + end + rest.split(end, 1)[1]
    return page


CORES = ("horizontal", "vertical", "nodes", "schedules", "elastic", "scheduling", "plan", "loop")
"""The packages whose modules the map names one by one."""


def module_table() -> str:
    """Return the modules of the cores by folder, each with the first sentence of what it says of itself."""
    lines: list[str] = []
    for core in CORES:
        for folder in sorted({path.parent for path in (SRC / core).rglob("*.py")}):
            named = [
                f"`{path.name}` {_first_sentence(path)}"
                for path in sorted(folder.glob("*.py"))
                if path.name != "__init__.py"
            ]
            if named:
                lines += [f"**{folder.relative_to(SRC)}/**", "", *(f"- {one}" for one in named), ""]
    return "\n".join(lines) + "\n"


def _first_sentence(path: Path) -> str:
    said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    first = " ".join(said.split())
    # "Returns" becomes "returns", but "HPA", "ScaledObjects" and "kube-scheduler" are names.
    is_plain = first.split(" ")[0][1:].islower()
    return (first[:1].lower() + first[1:] if is_plain else first).rstrip(".")


def with_modules(page: str) -> str:
    """Return the map with its list of modules as the code has it."""
    begin, end = _BLOCK[0].format("modules"), _BLOCK[1]
    head, rest = page.split(begin, 1)
    return head + begin + module_table() + end + rest.split(end, 1)[1]


def flag_table() -> str:
    """Return the table of Cluster Autoscaler's flags: type, default, the effect of each, and why."""
    lines = ["| Flag | Type | Default | Here | |", "|---|---|---|---|---|"]
    for flag in cluster_autoscaler_flags().values():
        default = "[]" if flag.is_list else flag.default or '""'
        lines.append(f"| `--{flag.name}` | {flag.kind} | `{default}` | {flag.status} | {flag.note} |")
    return "\n".join(lines) + "\n"


def with_flags(page: str) -> str:
    """Return the page of Cluster Autoscaler's command line with its table as the code has it."""
    begin, end = _BLOCK[0].format("flags"), _BLOCK[1]
    head, rest = page.split(begin, 1)
    return head + begin + flag_table() + end + rest.split(end, 1)[1]


def main() -> None:
    """Write the tables of the pages anew."""
    CLUSTER_AUTOSCALER.write_text(
        with_flags(CLUSTER_AUTOSCALER.read_text(encoding="utf-8")), encoding="utf-8"
    )
    REASONS.write_text(with_tables(REASONS.read_text(encoding="utf-8")), encoding="utf-8")
    MAP.write_text(with_modules(MAP.read_text(encoding="utf-8")), encoding="utf-8")
    for name, page in reference_pages().items():
        (DOCS / name).write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

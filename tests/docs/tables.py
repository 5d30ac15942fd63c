"""The pages of documentation as data, and the tables in them that are made from the code.

``python -m tests.docs.tables`` writes those tables anew; ``test_reasons`` fails while one is stale.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.loop import LoopEntry, loop_entries


def folder_of(entry: LoopEntry[Any]) -> str:
    """Return the folder of a loop below the package: the one that its ``entry`` module is in."""
    return "/".join(entry.make.__module__.split(".")[1:-1])


DOCS = Path(__file__).parents[2] / "docs"
REASONS = DOCS / "reasons.md"
VOCABULARIES: dict[str, Vocabulary] = {
    folder_of(entry): entry.vocabulary for entry in loop_entries() if entry.vocabulary.codes
}
"""By folder of the loop."""

_BLOCK = "<!-- made from the code: {} -->\n", "<!-- end -->"


def rows(text: str) -> list[list[str]]:
    """Gives the cells of all table rows of a page, without heads and rules."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if line.startswith("|") and not line.startswith("|---") and not following.startswith("|---"):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def section(page: str, heading: str) -> str:
    """Gives the text under a heading, down to the next one of its rank or above."""
    rank = heading.split(" ", maxsplit=1)[0]
    tail = page.split(f"{heading}\n", 1)[1]
    return re.split(rf"^#{{2,{len(rank)}}} ", tail, maxsplit=1, flags=re.MULTILINE)[0]


def vocabulary_table(vocabulary: Vocabulary) -> str:
    """Gives the table of a vocabulary: code, sentence, and whether it stands for something done."""
    lines = ["| Code | Done | Sentence |", "|---|---|---|"]
    for code in vocabulary.codes:
        bare = Reason(code, "<subject>")  # fields that are missing show as <name>
        done = "yes" if vocabulary.is_action(bare) else ""
        sentence = re.sub(r"<(\w+)>", r"{\1}", vocabulary.text(bare))
        lines.append(f"| `{code}` | {done} | {sentence} |")
    return "\n".join(lines) + "\n"


def with_tables(page: str) -> str:
    """Gives the page of reasons with its tables as the code has them."""
    for name, vocabulary in VOCABULARIES.items():
        begin, end = _BLOCK[0].format(name), _BLOCK[1]
        head, rest = page.split(begin, 1)
        page = head + begin + vocabulary_table(vocabulary) + end + rest.split(end, 1)[1]
    return page


def main() -> None:
    """Writes the tables of the pages anew."""
    REASONS.write_text(with_tables(REASONS.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Outputs of kubectl without what differs from run to run: names drawn at random, ages, times, ids."""

from __future__ import annotations

import re

_DRAWN = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of random name suffixes and of pod template hashes (apimachinery, util/rand)."""

_RULES = [
    (re.compile(pattern), text)
    for pattern, text in (
        # What ``kubectl wait`` logs, by chance, when it hangs up while the next event of its watch comes in.
        (
            r'(?m)^I\d{4} \S+ +\d+ reflector\.go:\d+\] "Warning: watch ended with error".* context canceled.*\n?',
            "",
        ),
        # The two folders that ``kubectl diff`` compares; some of their numbers look like hashes.
        (r"(/tmp/(?:LIVE|MERGED))-\d+", r"\1"),
        # Names of events: the object's name and a number in hexadecimal.
        (r"(?<=\.)[0-9a-f]{16}\b", "<event>"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uid>"),
        (r"containerd://[0-9a-f]{32,}", "containerd://<id>"),
        (rf"-[{_DRAWN}]{{8,10}}-[{_DRAWN}]{{5}}\b", "-<hash>-<drawn>"),
        (rf"-[{_DRAWN}]{{8,10}}\b", "-<hash>"),
        (
            rf"(pod-template-hash[=:] ?\"?|controller-revision-hash[=:] ?\"?)(store-)?[{_DRAWN}]{{8,10}}\b",
            r"\1\2<hash>",
        ),
        (rf"\b(agent|sums)-[{_DRAWN}]{{5}}\b", r"\1-<drawn>"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r'(resourceVersion"?: )"\d+"', r'\1"<version>"'),
        (r"(ResourceVersion:\s+)\d+", r"\1<version>"),
        (r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<ip>"),
        (r"\b127\.0\.0\.1:\d+\b", "<server>"),
        # Ages have at most two figures of seconds or minutes here, CPU has three.
        (r"(?<![\w.:/=-])(\d{1,2}m\d{1,2}s|1?\d{1,2}s|\d{1,2}m|\d{2,3}d|<invalid>)(?![\w%/=])", "<age>"),
        (r"\(x\d+ over <age>\)", "(x<n> over <age>)"),
        # When ``kubectl diff`` compared.
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000", "<time>"),
        # Below a title, ``describe`` indents by the longest title.
        (r"(?m)^ {11,}", " " * 10),
    )
]
_GAP = re.compile(r"(?<=\S) {2,}|\t+")
_UNDERLINE = re.compile(r"^(\s*)-{3,}", re.MULTILINE)


def normal(text: str, nodes: dict[str, str], folder: str) -> str:
    """Return the text with everything drawn or timed replaced by what it is.

    Args:
        text: What kubectl wrote.
        nodes: What each node is called here, by its name.
        folder: Where the manifests lie, called ``FILES``.
    """
    text = text.replace(folder, "FILES")
    for name, called in nodes.items():
        text = text.replace(name, called)
    for pattern, by in _RULES:
        text = pattern.sub(by, text)
    # Columns are as wide as their widest cell, so their gaps say nothing.
    return "\n".join(_GAP.sub("  ", line).rstrip() for line in text.splitlines())

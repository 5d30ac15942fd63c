"""Results of policies as JUnit XML, for CI systems."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from xml.etree import ElementTree as ET

import msgspec


class Case(msgspec.Struct, frozen=True):
    """One expectation in one run.

    ``failure`` is empty where it held; ``error`` says why it could not be tested.
    """

    suite: str
    name: str
    failure: str = ""
    error: str = ""


def junit_xml(cases: Sequence[Case]) -> bytes:
    """Return the cases as one document; the cases of a suite stand together."""
    root = ET.Element("testsuites", {"name": "kubetide", **_counts(cases)})
    for suite, group in groupby(cases, key=lambda case: case.suite):
        members = list(group)
        element = ET.SubElement(root, "testsuite", {"name": _valid(suite), **_counts(members)})
        for case in members:
            one = ET.SubElement(element, "testcase", classname=_valid(suite), name=_valid(case.name))
            for tag, text in (("failure", case.failure), ("error", case.error)):
                if text:
                    ET.SubElement(one, tag, message=_valid(text.splitlines()[0])).text = _valid(text)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + written + b"\n"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(bool(case.failure) for case in cases)),
        "errors": str(sum(bool(case.error) for case in cases)),
    }


def _valid(text: str) -> str:
    """Return the text without the characters that XML cannot hold."""
    return "".join(char if char in "\t\n\r" or ord(char) >= 32 else " " for char in text)

"""Checks the settings of notifications."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from urllib.parse import urlsplit

from kubetide.explain.reasons import Reason
from kubetide.loop import loop_entries


def check_notify(url: str, reasons: Iterable[str], controllers: Iterable[str]) -> str:
    """Return the problem of ``notify-url`` or ``notify-reasons``, with the fix; empty without one."""
    reasons = tuple(reasons)
    if not url:
        return "notify-reasons is for notify-url: set it, or leave both out" if reasons else ""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        # Not shown: the address may hold a secret.
        return "notify-url: is no address of a webhook; write https://HOST/PATH"
    vocabularies = [entry.vocabulary for entry in loop_entries(controllers)]
    known = sorted({code for one in vocabularies for code in one.codes if one.is_action(Reason(code))})
    for code in reasons:
        if code not in known:
            near = difflib.get_close_matches(code, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            return f"notify-reasons: {code!r} is no decision of these controllers; {hint}"
    return ""

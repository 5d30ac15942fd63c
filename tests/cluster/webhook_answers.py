"""kube-apiserver's answers to a creation that one webhook is asked about.

``webhook_answers.json`` holds the answers of v1.36.2 to a ConfigMap while a webhook answers as
``hook_server`` does; uids and the webhook's name are made equal.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

RECORDED = json.loads((Path(__file__).parent / "webhook_answers.json").read_text())

# Where upstream quotes Go's decoders, or its patch library, only the beginning is the same here.
OTHER_WORDS = {
    "wrongkind": "failed to call webhook: no kind",
    "text": "json parse error: ",
    "list": "json parse error: ",
    "badtype": "failed to call webhook: ",
    "patchundecodable": "received undecodable patch in webhook response: ",
    "patchbadb64": "failed to call webhook: illegal base64 data ",
    "patchnothere": "Internal error occurred: ",
    "patchtest": "Internal error occurred: ",
    "patchbadobject": "Internal error occurred: ",
}

_ASIDE = ("kind", "apiVersion", "metadata", "status")


def recordable(code, answer, warnings):
    """Return an answer as it is recorded: a Status, or the name and labels of what was made."""
    if answer["kind"] == "Status":
        reported = {key: value for key, value in answer.items() if key not in _ASIDE}
    else:
        reported = {"labels": answer["metadata"].get("labels"), "name": answer["metadata"]["name"]}
    found = {"code": code, **({"warnings": warnings} if warnings else {}), "answer": reported}
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "UID", json.dumps(found))
    return json.loads(text.replace("a.hooks.example.com", "HOOK"))


def same_but_words(path, mine, recorded):
    """Whether an answer is the recorded one, as far as its words are not those of Go's libraries."""
    begins = OTHER_WORDS.get(path, "")
    message = recorded["answer"].get("message", "")
    if recorded["code"] != 500 or not begins or begins not in message:
        return mine == recorded
    end = message.index(begins) + len(begins)
    reported = mine["answer"]["message"]
    expected = {
        "message": reported,
        "reason": "InternalError",
        "code": 500,
        "details": {"causes": [{"message": reported.removeprefix("Internal error occurred: ")}]},
    }
    return reported[:end] == message[:end] and mine == {"code": 500, "answer": expected}

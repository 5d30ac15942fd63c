"""The status ConfigMap ``cluster-autoscaler-status``: its YAML, as dashboards and scripts read it.

Source: Cluster Autoscaler, cluster state status (YAML since 1.30).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from kubetide.nodes.memory import StatusTimes
from kubetide.nodes.registry.cluster_state import is_known, is_scaling_up
from kubetide.nodes.registry.quiet import is_quiet
from kubetide.nodes.registry.view import ClusterView, Counts, GroupView, RenderedStatus
from kubetide.nodes.state import State
from kubetide.units.time import Instant, after, format_rfc3339, format_rfc3339_nano

LAST_UPDATED_ANNOTATION = "cluster-autoscaler.kubernetes.io/last-updated"
_MAX_ERROR = 500  # bytes
_CUT = "<truncated>"
_PROBES = re.compile(r"^ *(?:lastProbeTime|time): .*\n", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*")
_RESERVED = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}
# Characters of no meaning (Unicode's private use) in the place of the times that differ each time.
_TIME, _PROBED, _LOOKED_DOWN = "\ue000", "\ue001", "\ue002"


def status_time(now: Instant) -> str:
    """Return the time as Go prints it: ``2026-01-01 00:00:10.5 +0000 UTC``."""
    return f"{format_rfc3339_nano(now)[:-1].replace('T', ' ')} +0000 UTC"


def update_status(state: State, view: ClusterView, now: Instant) -> str | None:
    """Return the document if it must be written: it changed beyond probe times, or the interval has passed.

    Brings the times of transition in ``Memory`` up to date.
    """
    memory = state.memory
    rendered = _rendered(state, view, now)
    written = memory.status_written
    if (
        rendered.bare == memory.status_text
        and written is not None
        and now < after(written, state.settings.status_interval)
    ):
        return None
    memory.status_text, memory.status_written = rendered.bare, now
    memory.status_candidates = memory.scale_down.status.unneeded or ()
    text = rendered.text.replace(_TIME, status_time(now)).replace(_PROBED, format_rfc3339(now))
    looked = memory.scale_down.last_update
    return text if looked is None else text.replace(_LOOKED_DOWN, format_rfc3339(looked))


def _rendered(state: State, view: ClusterView, now: Instant) -> RenderedStatus:
    """Return the document without the times of probing; that of the last time while nothing else in it can differ."""
    memory, rendered = state.memory, view.rendered
    candidates, looked = memory.candidates, memory.scale_down.last_update is not None
    if (
        rendered is None
        or not is_quiet(state, now)
        or rendered.version != state.version
        or rendered.memory is not memory
        or rendered.candidates != candidates
        or rendered.looked_down != looked
    ):
        text = to_yaml(status_document(state, view, now))
        rendered = view.rendered = RenderedStatus(
            text, without_probes(text), state.version, memory, candidates, looked
        )
    return rendered


def note_candidates(state: State) -> None:
    """Count the unneeded nodes by group, for all documents until nodes are evaluated again.

    As upstream, a tick that evaluates none shows those of the last evaluation, also of nodes that are gone since.
    """
    found: dict[str, int] = {}
    for name in state.memory.scale_down.status.unneeded or ():
        group_id = state.group_of(name)
        if group_id is not None:
            found[group_id] = found.get(group_id, 0) + 1
    state.memory.candidates = found


def is_status_due(state: State, now: Instant) -> bool:
    """Return whether unchanged groups need a look at the document: candidates differ, or the interval passed."""
    written = state.memory.status_written
    if written is None or now >= after(written, state.settings.status_interval):
        return True
    return state.memory.status_candidates != (state.memory.scale_down.status.unneeded or ())


def status_document(state: State, view: ClusterView, now: Instant) -> dict[str, Any]:
    """Return the document as plain data, keys in upstream's order; probe times are placeholders."""
    scaling = any(is_scaling_up(state, group_view) for group_view in view.groups.values())
    candidates = state.memory.candidates
    groups = [
        _group(state, group_view, candidates.get(group_id, 0), now)
        for group_id, group_view in sorted(view.groups.items())
    ]
    cluster = {
        "health": {
            "status": "Healthy" if view.healthy else "Unhealthy",
            "nodeCounts": _node_counts(view.total),
            **_times(state.memory.health_status, "", "Healthy" if view.healthy else "Unhealthy", now),
        },
        "scaleUp": _line(state.memory.scale_up_status, "", "InProgress" if scaling else "NoActivity", now),
        "scaleDown": _scale_down(state, "", sum(candidates.values()), state.memory.scale_down.last_update),
    }
    return {
        "time": _TIME,
        "autoscalerStatus": "Running",
        "clusterWide": cluster,
        "nodeGroups": groups,
    }


def initializing_status(message: str, now: Instant) -> str:
    """Return the document of a loop or a cluster that has not initialized: only the reason is known, if any."""
    times = {"lastProbeTime": None, "lastTransitionTime": None}
    return to_yaml(
        {
            "time": status_time(now),
            "autoscalerStatus": "Initializing",
            **({"message": message} if message else {}),
            "clusterWide": {
                "health": {"nodeCounts": _node_counts(Counts()), **times},
                "scaleUp": times,
                "scaleDown": times,
            },
        }
    )


def to_yaml(value: Any, indent: int = 0) -> str:
    """Return plain data as YAML; a list's items have their parent's indent."""
    pad = " " * indent
    lines = []
    for key, item in value.items():
        if isinstance(item, dict):
            lines.append(f"{pad}{key}: {{}}\n" if not item else f"{pad}{key}:\n{to_yaml(item, indent + 2)}")
        elif isinstance(item, list):
            lines.append(f"{pad}{key}: []\n" if not item else f"{pad}{key}:\n")
            for entry in item:
                body = to_yaml(entry, indent + 2)
                lines.append(f"{pad}- {body[indent + 2 :]}")
        else:
            lines.append(f"{pad}{key}: {_scalar(item)}\n")
    return "".join(lines)


def _group(state: State, view: GroupView, candidates: int, now: Instant) -> dict[str, Any]:
    memory, group = state.memory, view.group
    health = "Healthy" if view.healthy else "Unhealthy"
    backoff = memory.backoff.get(group.id)
    backed_off = backoff is not None and backoff.until > now
    word = "NoActivity"
    if is_scaling_up(state, view):
        word = "InProgress"
    elif not view.healthy:
        word = "Unhealthy"
    elif backed_off:
        word = "Backoff"
    info: dict[str, Any] = {}
    if word == "Backoff" and backoff is not None:
        words = {"errorCode": backoff.error_code, "errorMessage": _shortened(backoff.error_message)}
        info = {name: text for name, text in words.items() if text}
    # Of a group of which nothing was ever seen upstream gives no times.
    probe = now if is_known(view.counts) else None
    times = _times(memory.health_status, group.id, health, probe)
    scale_up = _line(memory.scale_up_status, group.id, word, probe)
    return {
        "name": group.id,
        "health": {
            "status": health,
            "nodeCounts": _node_counts(view.counts),
            "cloudProviderTarget": group.target_size,
            "minSize": group.min_size,
            "maxSize": group.max_size,
            **times,
        },
        "scaleUp": {"status": scale_up.pop("status"), "backoffInfo": info, **scale_up},
        "scaleDown": _scale_down(state, group.id, candidates, memory.scale_down.last_update),
    }


def _shortened(message: str) -> str:
    """Return the message; of one that is too long its beginning, and that it was cut."""
    if len(message.encode()) <= _MAX_ERROR:
        return message
    return message.encode()[: _MAX_ERROR - len(_CUT)].decode(errors="ignore") + _CUT


def _scale_down(state: State, group_id: str, candidates: int, probe: Instant | None) -> dict[str, Any]:
    word = "CandidatesPresent" if candidates else "NoCandidates"
    line = _line(state.memory.scale_down_status, group_id, word, probe, _LOOKED_DOWN)
    return {"status": line.pop("status"), **({"candidates": candidates} if candidates else {}), **line}


def _line(
    times: dict[str, StatusTimes], key: str, status: str, probe: Instant | None, mark: str = _PROBED
) -> dict[str, Any]:
    return {"status": status, **_times(times, key, status, probe, mark)}


def _times(
    times: dict[str, StatusTimes], key: str, status: str, probe: Instant | None, mark: str = _PROBED
) -> dict[str, Any]:
    known = times.get(key)
    if known is None or known.status != status:
        known = times[key] = StatusTimes(status, probe)
    since = known.since
    return {
        "lastProbeTime": None if probe is None else mark,
        "lastTransitionTime": None if since is None else format_rfc3339(since),
    }


def _node_counts(counts: Counts) -> dict[str, Any]:
    deleted = {"beingDeleted": counts.being_deleted} if counts.being_deleted else {}
    return {
        "registered": {
            "total": counts.registered,
            "ready": counts.ready,
            "notStarted": len(counts.not_started),
            "suspended": counts.suspended,
            **deleted,
            "unready": {"total": counts.unready, "resourceUnready": counts.resource_unready},
        },
        "longUnregistered": len(counts.long_unregistered),
        "unregistered": len(counts.unregistered),
    }


def without_probes(text: str) -> str:
    """Return a document without probe times: each has its own line, and none is the first of an item."""
    return _PROBES.sub("", text)


@lru_cache(maxsize=1 << 12, typed=True)
def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return json.dumps(text, ensure_ascii=False)

"""Events of the node loop: what each is about, and when there are too many of them.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026), utils/kubernetes, the options of its event recorder.
"""

from __future__ import annotations

from kubetide.acting import Event, SpamFilter, of_one_object
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.settings import Settings
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import CAPACITY_BUFFERS


def spam_filter_of(settings: Settings) -> SpamFilter:
    """Return upstream's spam filter: of each reason an object gets one event in five minutes, the status object one of each message.

    Upstream knows the status object by its default name and namespace alone, and elsewhere leaves out most scale-ups.
    """
    status = settings.namespace, settings.status_config_map_name

    def key(about: ObjectReference, reason: str, message: str) -> object:
        if about.kind == "ConfigMap" and (about.namespace, about.name) == status:
            return message
        return of_one_object(about, reason, message), reason

    return SpamFilter(key, burst=1)


def event_of(record: EventRecord) -> Event:
    """Return the event as it is written."""
    about = ObjectReference(
        api_version=CAPACITY_BUFFERS.api_version if record.kind == CAPACITY_BUFFERS.kind else "v1",
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
    )
    return about, record.type, record.reason, record.message

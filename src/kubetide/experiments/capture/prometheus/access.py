"""From how Prometheus is reached to what it knows: the only place here that opens a connection."""

from __future__ import annotations

from collections.abc import Callable

from kubetide.cluster.metric_ports.prometheus import PrometheusClient
from kubetide.experiments.capture.observed import Seen
from kubetide.experiments.capture.prometheus.history import read_history
from kubetide.experiments.capture.prometheus.joined import joined
from kubetide.experiments.capture.prometheus.reading import Asking
from kubetide.experiments.capture.prometheus.times import span_of
from kubetide.ports.clock import Clock
from kubetide.runtime.configuration.prometheus_settings import PrometheusSettings
from kubetide.runtime.prometheus import prometheus_access
from kubetide.runtime.timing.clock import run_real


def seen_by_prometheus(
    run: PrometheusSettings, times: tuple[str, str, str], *, records: Seen | None, tell: Callable[[str], None]
) -> Seen:
    """Return what the Prometheus of the settings knows; with records, of the time before them, and then theirs.

    Args:
        times: Since when, until when, and the step, as a person writes them.
        tell: Takes sentences on how far it is.
    Raises: ConfigError for settings that cannot be used; CaptureError.
    """

    async def main(clock: Clock) -> Seen:
        connection, basic = prometheus_access(run)
        since, until, step = times
        begins = None if records is None else records.cluster.first
        span = span_of(since, until, step, records=begins, now=clock.now())
        warned: dict[str, None] = {}
        async with PrometheusClient(
            connection,
            clock,
            basic=basic,
            patience=run.prometheus_query_timeout,
            warn=lambda text: warned.update({text: None}),
        ) as client:
            history = await read_history(Asking(client, run.prometheus_url), span, tell)
        partial = tuple(f"Prometheus warns, so its answers may be partial: {text}" for text in warned)
        if records is None:
            notes = (*history.notes.alone, *history.notes.always)
            return Seen(history.cluster, history.services, (*partial, *notes))
        both = joined(history, records.cluster, records.services)
        return both._replace(notes=(*partial, *both.notes), vertical=records.vertical, tables=records.tables)

    return run_real(main)

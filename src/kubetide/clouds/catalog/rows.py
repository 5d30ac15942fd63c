"""What a catalogue says: prices by type, zone and market, shapes by type, and commitments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.ports.cloud import NVIDIA_GPU, Market
from kubetide.ports.errors import KubetideError


class CatalogError(KubetideError):
    """A catalogue that cannot be used; the text names file, row, column and fix."""


class Shape(NamedTuple):
    """What a machine has, in milli-CPU, bytes and counts; None where the catalogue does not say."""

    cpu: int | None = None
    memory: int | None = None
    pods: int | None = None
    gpus: int | None = None
    allocatable_cpu: int | None = None
    allocatable_memory: int | None = None

    def capacity(self) -> dict[str, int]:
        """Return what is said of the capacity, by resource."""
        said = {"cpu": self.cpu, "memory": self.memory, "pods": self.pods, NVIDIA_GPU: self.gpus}
        return {name: amount for name, amount in said.items() if amount is not None}

    def allocatable(self) -> dict[str, int]:
        """Return what is said of what pods may use, by resource."""
        said = {"cpu": self.allocatable_cpu, "memory": self.allocatable_memory}
        return {name: amount for name, amount in said.items() if amount is not None}


class Row(ApiStruct):
    """One line of a catalogue.

    Attributes:
        type: As in the label ``node.kubernetes.io/instance-type``.
        provider: The only provider that it holds for; empty for any.
        zone: The only zone that its price and commitment hold for; empty for any.
        market: What its price is for.
        price_per_hour: Of one machine; None where the row does not say.
        count: Of a commitment (market ``reserved``): how many machines it covers.
        shape: What a machine has.
        arch: As in the label ``kubernetes.io/arch``; empty where the row does not say.
        note: For people.
        place: Where it stands in the file.
    """

    type: str
    provider: str = ""
    zone: str = ""
    market: Market = "on-demand"
    price_per_hour: float | None = None
    count: int | None = None
    shape: Shape = field(default_factory=Shape)
    arch: str = ""
    note: str = ""
    place: str = ""


class Catalog:
    """The rows that hold for one provider.

    Attributes:
        name: What the file is called, for messages.
        rows: In the order of the file.
        warnings: What in the file has no effect, one sentence each.
    """

    def __init__(self, name: str, rows: Iterable[Row], warnings: tuple[str, ...] = ()) -> None:
        self.name, self.rows, self.warnings = name, tuple(rows), warnings

    def of(self, provider: str) -> Catalog:
        """Return the part that holds for a provider; rows that name it come before those for any."""
        rows = [row for row in self.rows if row.provider in {"", provider}]
        return Catalog(self.name, sorted(rows, key=lambda row: not row.provider), self.warnings)

    def price(self, type_: str, zone: str, market: Market) -> float | None:
        """Return the price of one machine an hour; a row of the zone counts before one of any zone."""
        for place in dict.fromkeys((zone, "")):
            for row in self._by_key.get((type_, place, market), ()):
                if row.price_per_hour is not None:
                    return row.price_per_hour
        return None

    def shape(self, type_: str) -> Shape | None:
        """Return what a machine of the type has; None where no row says anything of it."""
        return self._shapes.get(type_)

    def commitments(self, type_: str) -> tuple[Row, ...]:
        """Return the commitments for machines of the type, in the order of the file."""
        return tuple(
            row for row in self._of_type.get(type_, ()) if row.market == "reserved" and row.count is not None
        )

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The names of all types, sorted."""
        return tuple(sorted(self._of_type))

    @cached_property
    def _of_type(self) -> Mapping[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.type, []).append(row)
        return found

    @cached_property
    def _by_key(self) -> Mapping[tuple[str, str, str], list[Row]]:
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            found.setdefault((row.type, row.zone, row.market), []).append(row)
        return found

    @cached_property
    def _shapes(self) -> Mapping[str, Shape]:
        found: dict[str, Shape] = {}
        for row in self.rows:
            if row.shape != Shape():
                known = found.get(row.type, Shape())
                found[row.type] = Shape(
                    *(a if a is not None else b for a, b in zip(known, row.shape, strict=True))
                )
        return found

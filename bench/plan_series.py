"""The load series of `bench plan`: files of numbers, and the given ones, made from a folder of data."""

from __future__ import annotations

import gzip
import math
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kubetide.units.time import Duration, TimeFormatError, parse_duration, seconds


@dataclass(frozen=True)
class Series:
    """A load: requests/s, each for one step, and the requests/s that one pod serves at full use."""

    name: str
    values: NDArray[np.float64]
    step: Duration
    capacity: float

    def cut(self, first: int, last: int) -> Series:
        """Return a part of it."""
        return Series(self.name, self.values[first:last], self.step, self.capacity)

    def in_fine_units(self) -> Series:
        """Return the same load counted in such a unit that a pod serves 256 to 512 of it in a second.

        Metrics are read in thousandths, so the share of a pod that serves 0.008 requests/s would be 6m in place of
        5.66m. The unit is a power of two of requests: all quotients stay as they are, to the last bit.
        """
        unit = 2.0 ** (9 - math.frexp(self.capacity)[1])
        return Series(self.name, self.values * unit, self.step, self.capacity * unit)


def numbers(path: Path) -> NDArray[np.float64]:
    """Return the last column of a file; a first line that is no number is a header. Raises ValueError."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    cells = [line.rsplit(",", 1)[-1].strip() for line in text.splitlines() if line.strip()]
    if not cells:
        raise ValueError(f"{path}: empty; a series has one number a line")
    try:
        float(cells[0])
    except ValueError:
        cells = cells[1:]
    found = np.array([float(cell) for cell in cells])
    if not len(found) or not np.isfinite(found).all() or (found < 0).any():
        raise ValueError(f"{path}: has no numbers, or some that are negative or not finite")
    return found


def parse_series(text: str) -> Series:
    """Read ``FILE:step=1s:capacity=50:scale=1``. Raises ValueError that names the fix."""
    file, *settings = text.split(":")
    said = {"step": "1s", "capacity": "", "scale": "1"}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if name not in said or not equals:
            raise ValueError(f"{text}: {setting!r} is not read; write FILE:step=1s:capacity=50:scale=1")
        said[name] = value
    try:
        values = numbers(Path(file)) * float(said["scale"])
        step = parse_duration(said["step"])
        capacity = float(said["capacity"]) if said["capacity"] else float(values.mean()) / 8
    except (OSError, TimeFormatError) as error:
        raise ValueError(f"{text}: {error}") from error
    if step <= 0 or capacity <= 0:
        raise ValueError(f"{text}: step and capacity must be above 0")
    return Series(Path(file).name.split(".")[0], values, step, capacity)


def given(data: Path) -> list[Series]:
    """Return the eleven given series. Raises OSError where the folder lacks one."""
    cup = numbers(data / "worldcup98" / "requests_per_minute_1998-04-30_to_06-20.csv.gz")[-20160:] / 60
    nasa = numbers(data / "nasa-http" / "requests_per_second.csv.gz")[: 14 * 86400] * 20
    found = [
        Series("worldcup98", cup, seconds(60), 50),
        Series("worldcup98 x4", cup, seconds(15), 50),
        Series("nasa x20", nasa, seconds(1), 1.5),
    ]
    found += [
        Series(name, numbers(data / "autothrottle" / f"{name}.txt.gz"), seconds(1), 3)
        for name in ("diurnal", "diurnal-2", "noisy")
    ]
    found.append(Series("llm conv x6", 6 * _arrivals(data / "azure-llm-2023"), seconds(1), 3))
    for name in ("nyc_taxi", "elb_request_count_8c0756", "Twitter_volume_AAPL", "Twitter_volume_AMZN"):
        values = numbers(data / "nab" / f"{name}.csv.gz") / 60
        found.append(Series(name, values, seconds(60), float(values.mean()) / 8))
    return found


def _arrivals(folder: Path) -> NDArray[np.float64]:
    text = gzip.decompress((folder / "AzureLLMInferenceTrace_conv.csv.gz").read_bytes()).decode()
    times = [
        datetime.fromisoformat(line.split(",")[0][:26]).timestamp() for line in text.splitlines()[1:] if line
    ]
    return np.bincount((np.array(times) - times[0]).astype(np.int64)).astype(np.float64)

"""A generated lake: trails in the mountains, and tracking data of the animals that live there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MARKS = ("Basecamp", "Forest", "Glacier", "Marked", "Nature", "Pass", "Steep", "Unmarked")
PLACES = ("Lake", "Meadow", "Ridge", "Summit", "Valley")
ANIMALS = ("Alpine Chamois", "Alpine Ibex", "Alpine Marmot", "Bear", "Fox", "Golden Eagle", "Lynx", "Red Deer", "Wolf")
MOUNTAINS = 200


def write_lake(root: Path, trail_files: int = 120, months: int = 24, files_per_month: int = 12) -> None:
    """Writes both tables: trails sorted by name, tracking data in a folder per month and sorted by species within."""
    rng = np.random.default_rng(7)
    _write_trails(root / "trails", rng, trail_files)
    _write_tracking(root / "tracking_data", rng, months, files_per_month)


def _write_trails(folder: Path, rng: np.random.Generator, files: int, rows: int = 500) -> None:
    folder.mkdir(parents=True)
    count = files * rows
    feet = rng.random(count) < 0.5
    metres = rng.gamma(4.0, 300.0, count)
    trails = pa.table(
        {
            "name": [
                f"{MARKS[m]}-{MOUNTAINS_NAMES[p]}-{PLACES[q]}"
                for m, p, q in zip(
                    rng.integers(0, len(MARKS), count),
                    rng.integers(0, MOUNTAINS, count),
                    rng.integers(0, len(PLACES), count),
                    strict=True,
                )
            ],
            "unit": pa.array(np.where(feet, "feet", "meters")),
            "altit": pa.array(np.where(feet, metres / 0.3048, metres).astype(np.int32)),
            "mountain": pa.array(rng.integers(0, MOUNTAINS, count).astype(np.int32)),
        }
    ).sort_by("name")
    for i in range(files):
        pq.write_table(trails.slice(i * rows, rows), folder / f"part-{i:05}.parquet")


MOUNTAINS_NAMES = tuple(f"Peak{i:03}" for i in range(MOUNTAINS))


def _write_tracking(folder: Path, rng: np.random.Generator, months: int, files: int, rows: int = 2000) -> None:
    for m in range(months):
        first = dt.date(2023 + m // 12, m % 12 + 1, 1)
        place = folder / f"month={first:%Y-%m}"
        place.mkdir(parents=True)
        count = files * rows
        seconds = rng.integers(0, 28 * 86400, count)
        start = np.datetime64(first, "us")
        sightings = pa.table(
            {
                "species": pa.array(np.array(ANIMALS)[rng.integers(0, len(ANIMALS), count)]),
                "s": pa.array(rng.integers(10, 120, count).astype(np.int32)),
                "area": pa.array(rng.integers(0, MOUNTAINS, count).astype(np.int32)),
                "seen_at": pa.array(start + seconds.astype("timedelta64[s]"), pa.timestamp("us", tz="UTC")),
                "num_sightings": pa.array(rng.geometric(0.01, count).astype(np.int64)),
            }
        ).sort_by([("species", "ascending"), ("seen_at", "ascending")])
        for i in range(files):
            pq.write_table(sightings.slice(i * rows, rows), place / f"part-{i:05}.parquet")

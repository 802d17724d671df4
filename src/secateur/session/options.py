"""Typed options, read from Spark's own configuration under ``spark.secateur.``, so that SQL's SET works too."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from secateur.errors import OptionError
from secateur.passes import PASSES
from secateur.passes.tuning import Tuning
from secateur.stats.registry import StatisticsSettings

_TUNING, _STATISTICS = Tuning(), StatisticsSettings()
PREFIX = "spark.secateur."
PASS_NAMES = tuple(technique.name for technique in PASSES)


@dataclass(frozen=True, slots=True)
class Options:
    """Every option with its default.

    >>> Options().budget_ms, Options().stats_auto
    (1000, True)
    """

    enabled: bool = True
    """Whether queries of this session are pruned."""
    passes: tuple[str, ...] = PASS_NAMES
    """Which techniques run."""
    budget_ms: int = 1000
    """Longest time for deciding, in milliseconds; after that the query runs unpruned."""
    filter_budget_ms: int = round(_TUNING.filter_seconds * 1000)
    """Longest time for filtering, in milliseconds; files that were not judged by then are read."""
    filter_file_ms: int = round(_TUNING.file_seconds * 1000)
    """Estimated time to read a file, in milliseconds; a condition that costs more than it saves is given up."""
    join_ranges: int = _TUNING.join_ranges
    """Maximum number of key ranges passed from one join side to the other."""
    limit_driver_bytes: int = _TUNING.driver_bytes
    """Largest total size of files that the driver reads itself for a LIMIT, without a Spark job; 0: never."""
    stats_auto: bool = _STATISTICS.collect
    """Whether statistics of a table are collected in the background when a query first uses it."""
    stats_dir: str = _STATISTICS.folder
    """A directory for the statistics of all tables; empty: a ``_secateur`` folder in each table's directory."""
    stats_write: str = _STATISTICS.write
    """Who writes statistics: ``auto`` (queries on local disks and HDFS, elsewhere ``collect`` only), always, never."""
    history: int = 100
    """Number of summaries that ``pruner.history`` keeps."""

    @property
    def tuning(self) -> Tuning:
        """What the passes may spend."""
        return Tuning(
            self.filter_budget_ms / 1000, self.filter_file_ms / 1000, self.join_ranges, self.limit_driver_bytes
        )

    @property
    def statistics(self) -> StatisticsSettings:
        """How statistics are collected and kept."""
        return StatisticsSettings(self.stats_auto, self.stats_dir, self.stats_write)


def _boolean(text: str) -> bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("true or false")


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 2**31:
        return int(text)
    raise ValueError("a whole number from 1 to 2147483647")


def _size(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) < 2**63:
        return int(text)
    raise ValueError("a number of bytes, 0 or more")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if all(name in PASS_NAMES for name in names):
        return names
    raise ValueError("names out of " + ", ".join(PASS_NAMES) + ", separated by commas (none at all: nothing runs)")


def _text(text: str) -> str:
    return text


def _policy(text: str) -> str:
    if text in ("auto", "always", "never"):
        return text
    raise ValueError("auto, always or never")


_PARSERS: dict[str, Callable[[str], Any]] = {
    "enabled": _boolean,
    "passes": _names,
    "budget_ms": _count,
    "filter_budget_ms": _count,
    "filter_file_ms": _count,
    "join_ranges": _count,
    "limit_driver_bytes": _size,
    "stats_auto": _boolean,
    "stats_dir": _text,
    "stats_write": _policy,
    "history": _count,
}
NAMES = tuple(PREFIX + f.name.replace("_", ".") for f in fields(Options))
"""The full names, as Spark knows them."""


def parse_options(settings: Mapping[str, object]) -> Options:
    """The options that these settings make; names with or without the prefix, values as text or as Python values.

    >>> parse_options({"spark.secateur.budget.ms": "250", "stats.auto": False}).budget_ms
    250
    >>> parse_options({"spark.secateur.budgte.ms": "250"})
    Traceback (most recent call last):
    secateur.errors.OptionError: unknown option spark.secateur.budgte.ms; did you mean spark.secateur.budget.ms? ...
    """
    changes = {}
    for key, value in settings.items():
        field, parsed = parse_option(key, value)
        changes[field] = parsed
    return replace(Options(), **changes)


def parse_option(key: str, value: object) -> tuple[str, Any]:
    """One option's field name and parsed value, or an :class:`OptionError` that names what is valid."""
    name = key if key.startswith(PREFIX) else PREFIX + key
    field = name.removeprefix(PREFIX).replace(".", "_")
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.0)[0]
        raise OptionError(f"unknown option {name}; did you mean {near}? The options are: {', '.join(NAMES)}")
    try:
        return field, _PARSERS[field](as_text(value))
    except ValueError as problem:
        raise OptionError(f"{name} = {as_text(value)!r} is not valid: it takes {problem}") from None


def as_text(value: object) -> str:
    """A value as Spark's configuration holds it.

    >>> as_text(True), as_text(("filter",)), as_text(5)
    ('true', 'filter', '5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).strip()

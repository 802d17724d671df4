"""Code for Spark's executors, which need pyarrow and numpy, but not secateur: it travels by value."""

from __future__ import annotations

from pyspark import cloudpickle

from secateur.stats import narrowest_ranges
from secateur.stats.collect import chunk_statistics, executor_job, footers, range_scan, value_stream

_TRAVELING = (chunk_statistics, executor_job, footers, narrowest_ranges, range_scan, value_stream)


def pack(work: object) -> bytes:
    """Functions and values of these modules as bytes that ``pickle`` reads where secateur is not installed."""
    for module in _TRAVELING:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    packed: bytes = cloudpickle.dumps(work)  # type: ignore[no-untyped-call]
    return packed

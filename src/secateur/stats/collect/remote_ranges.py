"""Range-sets of files that are not on this machine: Spark's own Parquet reader gives the values, its tasks gather them.

Nothing but Spark opens these files, so whatever lets Spark read them is all that is needed. A file is read whole by one
task, and counts only if as many rows came as its footer says.
"""

from __future__ import annotations

import pickle
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from secateur.stats.collect import value_stream
from secateur.stats.collect.by_value import pack
from secateur.stats.collect.chunk_statistics import Trust
from secateur.stats.collect.executor_job import cause_of
from secateur.stats.collect.progress import Progress
from secateur.stats.collect.range_scan import Wanted, cells_table, columns_of
from secateur.stats.collect.remote_footers import File, changed_files, read_footer_of
from secateur.stats.collect.value_stream import Expected
from secateur.stats.remote_files import FileProblem, PatientFiles, StorageError

_AT_ONCE = 2000
"""Files of one job."""
_UNQUOTED = "_-!.~'()*,;:$&+=@/"

# The name and file type of each column to read
Shape = tuple[tuple[str, str], ...]


def read_remote_ranges(
    files: Sequence[File],
    wanted: Wanted,
    spark: SparkSession | None,
    remote: PatientFiles,
    table: str,
    bar: Progress,
) -> list[pa.Table]:
    """What ``read_ranges`` tells of files by Hadoop's paths, of the table with that fingerprint."""
    if spark is None:
        raise StorageError("range-sets of files that are not on this machine need Spark")
    before = dict(zip((f[0] for f in files), _times(files, wanted, remote, table), strict=True))
    shapes: dict[Shape, list[Expected]] = defaultdict(list)
    errors: dict[str, str] = {}
    for file, footer in read_footer_of(files, remote, table):
        if isinstance(footer, str):
            errors[file[0]] = footer
        else:
            expected, shape = _expected(file, footer, wanted)
            shapes[shape].append(expected)
    tables: list[pa.Table] = []
    done = len(errors)
    for shape, group in shapes.items():
        for at in range(0, len(group), _AT_ONCE):
            some = group[at : at + _AT_ONCE]
            tables += _read(some, shape, wanted, spark, remote.options(table))
            done += len(some)
            bar.update(done)
    changed = changed_files([before[path] for path, _, _ in files if path not in errors], remote, table)
    errors |= changed
    good = [_without(each, changed) for each in tables]
    bad = [file for file in files if file[0] in errors]
    return [*good, cells_table(bad, [{}] * len(bad), [errors[path] for path, _, _ in bad], wanted)]


def _times(files: Sequence[File], wanted: Wanted, remote: PatientFiles, table: str) -> list[File]:
    """The files as they are to be afterwards: as listed, or as they are now where the listing has no times."""
    if wanted.dated:
        return list(files)
    states = remote.states(table, [path for path, _, _ in files])
    return [
        (path, length, -1 if isinstance(state, FileProblem) else state[1])
        for (path, length, _), state in zip(files, states, strict=True)
    ]


def _expected(file: File, footer: pq.FileMetaData, wanted: Wanted) -> tuple[Expected, Shape]:
    chosen = [each for each in columns_of(footer.schema, wanted) if _spark_type(each[2])]
    trust = Trust(footer.created_by or "", footer.metadata or {})
    keys = tuple((key, family) for key, _, family, _ in chosen)
    return Expected(file, footer.num_rows, trust.calendar, keys), tuple((name, family) for _, name, family, _ in chosen)


_TYPES = {
    **dict.fromkeys(("int8",), "byte"),
    **dict.fromkeys(("int16", "uint8"), "short"),
    **dict.fromkeys(("int32", "uint16"), "integer"),
    **dict.fromkeys(("int64", "uint32"), "long"),
    **dict.fromkeys(("timestamp_ms_utc", "timestamp_us_utc"), "timestamp"),
    **dict.fromkeys(("timestamp_ms", "timestamp_us"), "timestamp_ntz"),
    "float": "float",
    "double": "double",
    "date": "date",
    "string": "string",
}


def _spark_type(family: str) -> str:
    """The type as which Spark reads a file type value for value, empty if there is none."""
    return family if family.startswith("decimal(") else _TYPES.get(family, "")


def _read(
    files: Sequence[Expected], shape: Shape, wanted: Wanted, spark: SparkSession, options: dict[str, str]
) -> list[pa.Table]:
    here = [each for each in files if not shape or not each.rows]
    tables = [value_stream.empty(here, wanted)] if here else []
    full = [each for each in files if shape and each.rows]
    if full:
        frame = _frame(full, shape, _session(spark, full), options)
        known = {spelling: each for each in full for spelling in _spellings(each.file[0])}
        gather = _gathering(known, wanted)
        try:
            parts = frame.mapInArrow(gather, "part binary").collect()
        except Exception as error:
            raise StorageError(f"Spark's tasks could not make range-sets: {cause_of(error)}") from error
        found = [pa.ipc.open_stream(part[0]).read_all() for part in parts]
        seen = {path for each in found for path in each["path"].to_pylist()}
        lost = [each for each in full if each.file[0] not in seen]
        tables += [*found, value_stream.refused(lost, "Spark read no rows of it", wanted)]
    return tables


def _gathering(known: dict[str, Expected], wanted: Wanted) -> Callable[[Iterable[Any]], Iterator[Any]]:
    packed = pack((value_stream.gather, known, wanted))

    def gather(batches: Iterable[Any]) -> Iterator[Any]:
        work, files, what = pickle.loads(packed)
        return work(batches, files, what)  # type: ignore[no-any-return]

    gather.__module__ = "__main__"  # so that it travels by value, too
    return gather


def _session(spark: SparkSession, files: Sequence[Expected]) -> SparkSession:
    """The session with its settings, but reading each file by one task, under the names that files have."""
    session = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    largest, total = max(each.file[1] for each in files), sum(each.file[1] for each in files)
    tasks = 4 * spark.sparkContext.defaultParallelism
    if (spark.sparkContext.master or "").startswith("local"):  # the first python3 on the path need not have pyarrow
        session.conf.set("spark.sql.execution.pyspark.python", sys.executable)
    for key, value in {
        "spark.secateur.enabled": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.files.maxPartitionBytes": str(max(largest, total // tasks) + 1),
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.fieldId.read.enabled": "false",
        "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    }.items():
        session.conf.set(key, value)
    return session


def _frame(files: Sequence[Expected], shape: Shape, session: SparkSession, options: dict[str, str]) -> DataFrame:
    schema = StructType()
    for name, family in shape:
        schema = schema.add(name, _spark_type(family))
    reader = session.read.schema(schema).options(**options)
    reader = reader.option("__globPaths__", "false").option("recursiveFileLookup", "true")
    reader = reader.option("datetimeRebaseMode", "CORRECTED").option("mergeSchema", "false")
    frame = reader.parquet(*(each.file[0] for each in files))
    first = F.when(F.col("_metadata.row_index") == 0, F.col("_metadata.file_path")).alias("path")
    columns = [F.col("`" + name.replace("`", "``") + "`").alias(f"c{at}") for at, (name, _) in enumerate(shape)]
    return frame.select(first, *columns)


def _spellings(path: str) -> set[str]:
    """A path as Hadoop writes it, and as a URI, in which letters beyond ASCII may stand for themselves.

    >>> sorted(_spellings("s3a://b/ü 1%"))
    ['s3a://b/%C3%BC%201%25', 's3a://b/ü 1%', 's3a://b/ü%201%25']
    """
    plain = "".join(c if ord(c) > 127 else quote(c, safe=_UNQUOTED) for c in path)
    return {path, plain, quote(path, safe=_UNQUOTED)}


def _without(table: pa.Table, changed: dict[str, str]) -> pa.Table:
    if not changed:
        return table
    return table.filter(pa.array([path not in changed for path in table["path"].to_pylist()], pa.bool_()))

"""``attach`` and the handle that it returns."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from secateur.bridge.capabilities import Capability
from secateur.bridge.capabilities import as_text as table_of
from secateur.bridge.hadoop_files import HadoopFiles
from secateur.bridge.jvm import UNITS, Callback, JvmBridge, first_line, require_classic
from secateur.errors import AttachError, SecateurError
from secateur.reasons import Reason
from secateur.report.history import History
from secateur.report.summary import Summary
from secateur.session.options import PREFIX, Options, as_text, parse_option, parse_options
from secateur.session.planner import Planner
from secateur.stats.collect.collector import CollectReport
from secateur.stats.formats.readers import decode_source
from secateur.stats.registry import Ranges, Registry

log = logging.getLogger("secateur")

MOST_RANGES = 1000
"""More than this would be an index, not a statistic."""
_attached: WeakKeyDictionary[Any, Pruner] = WeakKeyDictionary()


class Pruner:
    """The handle of an attached Spark: what was pruned, and the switches. :func:`attach` returns it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._version = spark.version
        self._history = History(Options().history)
        self._registry = Registry(spark, HadoopFiles(spark))
        self._callback = Callback(Planner(self._registry, self._history).answer)
        self._bridge: JvmBridge | None = None
        self._on = False

    @property
    def attached(self) -> bool:
        """Whether queries are being pruned; False after ``detach`` or if this Spark could not be attached to."""
        return self._on

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """What works with this Spark, and why the rest does not.

        >>> [c.name for c in pruner.capabilities if c.name in ("filters", "driver reads") and c.works]
        ['filters', 'driver reads']
        """
        if self._bridge is None:
            names = ("filters", *(unit.name for unit in UNITS))
            return tuple(Capability(name, "secateur is not attached") for name in names)
        return self._bridge.capabilities

    def __repr__(self) -> str:
        """The table of capabilities.

        >>> pruner  # doctest: +ELLIPSIS
        secateur, attached to Spark ...
        filters           works
        run-time pruning  works
        driver reads      works
        ...
        """
        how = "attached to" if self._on else "not attached to"
        return f"secateur, {how} Spark {self._version}\n{table_of(self.capabilities)}"

    @property
    def last(self) -> Summary | None:
        """The summary of the query that was planned last, None before the first.

        >>> rows = spark.sql("SELECT * FROM trails WHERE altit > 1500").collect()
        >>> pruner.last.files_kept, pruner.last.files_total
        (2, 10)
        """
        summaries = self.history
        return summaries[-1] if summaries else None

    @property
    def history(self) -> tuple[Summary, ...]:
        """The summaries of the last queries (``spark.secateur.history`` of them), oldest first.

        >>> rows = spark.sql("SELECT * FROM trails WHERE altit < 5").collect()
        >>> pruner.history[-1].files_kept
        1
        """
        self._absorb()
        return self._history.summaries

    def explain(self, query: DataFrame | str) -> Summary:
        """Plans a query without running it, and says what would be pruned. A command in SQL text does not run either.

        >>> pruner.explain("SELECT * FROM trails WHERE altit > 1500").files_kept
        2
        """
        if self._bridge is None:
            return self._history.summaries[-1]
        number = self._bridge.explain(self._spark, query)
        self._absorb()
        return self._history.explained(number)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside this block, every query of this Spark runs as it would without secateur.

        >>> with pruner.paused():
        ...     plain = spark.sql("SELECT count(*) FROM trails WHERE altit > 1500").collect()
        >>> plain == spark.sql("SELECT count(*) FROM trails WHERE altit > 1500").collect()
        True
        """
        if self._bridge is None:
            yield
            return
        self._bridge.pause()
        try:
            yield
        finally:
            self._bridge.resume()

    def detach(self) -> None:
        """Stops pruning; summaries stay readable. Call ``attach`` to start again.

        >>> pruner.detach()
        >>> pruner.attached
        False
        """
        _attached.pop(self._spark.sparkContext._gateway, None)
        if self._bridge is not None and self._on:
            self._absorb()
            self._bridge.switch_off(self._spark)
        self._on = False

    def wait_for_statistics(self, seconds: float = 600.0) -> None:
        """Waits until the collections in the background are done, at most so many seconds."""
        self._registry.wait(seconds)

    def _attach(self) -> None:
        try:
            self._bridge = JvmBridge.of(self._spark)
            self._bridge.switch_on(self._spark, self._callback)
            self._on = True
        except Py4JError as problem:
            self._bridge = None
            text = f"secateur could not attach, so queries run unpruned: {_not_supported(self._spark, problem)}"
            log.warning(text)
            warnings.warn(text, stacklevel=3)
            self._history.add(Summary(0, reasons=(Reason("bridge-failed", text),)))

    def _absorb(self) -> None:
        if self._bridge is None:
            return
        try:
            self._history.absorb(self._bridge.drain())
        except (Py4JError, OSError):  # Spark is gone; what is known stays readable
            log.debug("the JVM cannot be asked for its records", exc_info=True)


def attach(spark: SparkSession, options: Mapping[str, object] | None = None) -> Pruner:
    """Makes every query of this Spark read only the files that it needs. Calling it again returns the same handle.

    Options are those of ``spark.secateur.*``, with or without the prefix; they are set in the session.

    >>> pruner = secateur.attach(spark, {"budget.ms": 500})
    >>> pruner.attached
    True
    """
    session = require_classic(spark)
    for key, value in (options or {}).items():
        parse_option(key, value)
    session_options(session)
    for key, value in (options or {}).items():
        session.conf.set(PREFIX + key.removeprefix(PREFIX), as_text(value))
    gateway = session.sparkContext._gateway
    known = _attached.get(gateway)
    if known is not None and known.attached and known._spark.sparkContext is session.sparkContext:
        return known
    pruner = Pruner(session)
    pruner._attach()
    _attached[gateway] = pruner
    return pruner


def collect(
    spark: SparkSession,
    table: str | DataFrame,
    *,
    ranges: int | None = None,
    columns: Sequence[str] | None = None,
    progress: bool | None = None,
) -> CollectReport:
    """Reads the statistics of a table's new files now, keeps them in its store, and reports what it did.

    ``table`` is what SQL takes for one (``catalog.db.table``, a view, ``delta.`/lake/t` ``), a path or URI, or a data
    frame that reads tables.

    With ``ranges`` a Spark job also reads the values of ``columns`` (all columns, if none are named). It keeps up to
    this many ranges per file that hold all values: a query for a value in a gap between them skips the file. If the
    table has at most 100,000 rows, every value is kept. Then a condition on it shows which keys are left, and skips
    files of the tables that join with it.

    >>> secateur.collect(spark, f"{lake}/trails").files_total
    10
    >>> secateur.collect(spark, f"{lake}/trails", ranges=20, columns=["altit"]).files_ranged
    10
    >>> rows = spark.sql("SELECT * FROM trails WHERE altit = 5").collect()
    >>> pruner.last.files_kept
    0
    """
    wanted = _ranges(ranges, columns)
    session = require_classic(spark)
    options = session_options(session)
    frame = _frame(session, table)
    if wanted is not None and wanted.columns is not None:
        _check_columns(frame, wanted.columns, table)
    known = _attached.get(session.sparkContext._gateway)
    registry = known._registry if known is not None else Registry(session, HadoopFiles(session))
    reports = []
    declined = []
    try:
        bridge = JvmBridge.of(session)
    except Py4JError as problem:
        raise AttachError(f"{table} was not looked at: {_not_supported(session, problem)}") from None
    for found in bridge.listings(session, frame, paths=wanted is not None):
        if "listing" in found:
            source, reader = decode_source(found["listing"])
            reports.append(registry.collect(source, reader, options.statistics, progress, wanted, found.get("part")))
        else:
            declined.append(f"{found['scan']['table']} is left alone: {found['scan'].get('declined')}")
    if not reports:
        raise SecateurError(
            f"{table} has no files that secateur can collect statistics of. "
            + "; ".join(declined or ["It reads no files"])
        )
    ranged = [r.files_ranged for r in reports if r.files_ranged is not None]
    return CollectReport(
        sum(r.files_total for r in reports),
        sum(r.files_read for r in reports),
        sum(r.files_failed for r in reports),
        sum(r.seconds for r in reports),
        ", ".join(r.store_text for r in reports),
        "; ".join(r.problem for r in reports if r.problem),
        tuple(f for r in reports for f in r.failures),
        sum(ranged) if ranged else None,
    )


def _not_supported(spark: SparkSession, problem: Exception) -> str:
    return f"secateur supports Spark 4.0 and 4.1, this is Spark {spark.version}. {first_line(problem)}"


def _ranges(most: int | None, columns: Sequence[str] | None) -> Ranges | None:
    if most is None:
        if columns is not None:
            raise SecateurError(
                "columns= names the columns to make range sets of, so it needs ranges= as well, such as ranges=20"
            )
        return None
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MOST_RANGES:
        raise SecateurError(f"ranges={most!r} is not a number of ranges from 1 to {MOST_RANGES}")
    if isinstance(columns, str):
        raise SecateurError(f"columns={columns!r} is not a list of names: write columns=[{columns!r}]")
    return Ranges(most, None if columns is None else tuple(columns))


def _check_columns(frame: DataFrame, columns: Sequence[str], table: str | DataFrame) -> None:
    """A name that the table does not have is a slip, not a column without values."""
    have = {name.lower(): name for name in frame.columns}
    wrong = [name for name in columns if name.lower() not in have]
    if wrong:
        name = table if isinstance(table, str) else "the data frame"
        raise SecateurError(f"{name} has no column {', '.join(wrong)}; its columns are {', '.join(frame.columns)}")


def _frame(spark: SparkSession, table: str | DataFrame) -> DataFrame:
    """What to collect of: a name as SQL takes it, by Spark's own parser, or else a path."""
    if not isinstance(table, str):
        return table
    jvm_session: Any = spark._jsparkSession
    try:
        jvm_session.sessionState().sqlParser().parseMultipartIdentifier(table)
    except ParseException as problem:
        if "/" in table:
            return spark.read.format("delta" if _has_delta_log(spark, table) else "parquet").load(table)
        remedy = "in a name, put parts with other characters than letters, digits and _ between backticks"
        raise SecateurError(f"{table!r} is neither a table's name nor a path: {remedy}") from problem
    return spark.table(table)


def _has_delta_log(spark: SparkSession, path: str) -> bool:
    """Whether the path is that of a Delta table, as far as the file system says."""
    jvm: Any = spark._jvm
    log_folder = jvm.org.apache.hadoop.fs.Path(path.rstrip("/") + "/_delta_log")
    try:
        files = log_folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        return bool(files.exists(log_folder))
    except Py4JError:
        return False


def session_options(spark: SparkSession) -> Options:
    """The options as the session has them, refused by name if one is wrong."""
    return parse_options({key: value for key, value in _conf(spark).items() if key.startswith(PREFIX)})


def _conf(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)

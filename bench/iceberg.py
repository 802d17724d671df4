"""Iceberg: how long a selective query takes to plan, with Iceberg's own planning and with secateur, in the same run.

Only planning is measured, so the tables are made up: manifests that Iceberg's own library writes, of data files that
do not exist, with ten columns and an increasing id. Goals, stated before measuring:

* warm, optimizer and physical planning together, median of 20, taken in turns: at least 8 times faster at 100,000
  files, 3 times at 1,000; a table of one file shows what Spark takes in any case;
* the first query on a table: not slower than Iceberg's own;
* loading the statistics of 100,000 files: at most 2.5 s; after one more commit: at most 0.2 s.

``--memory`` instead tells what a million files take in the JVM and in Python.

The last line is JSON with the context of the run.
"""

from __future__ import annotations

import argparse
import tempfile
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.report import heap_used, report

SHAPES = ((1_000, 1), (1_000, 50), (100_000, 1))
"""Files, and the commits that they came in."""
HELD = 200_000
REPEATS = 20
PAIRS = 6
WARM_UP = 45
"""So many times 23 queries are planned each way before it counts, as in a session that has been at work for a while:
Java compiles what both sides run again and again, and both become quicker up to about a thousand queries."""
COLUMNS = "id bigint, name string, seen timestamp, " + ", ".join(f"v{i} double" for i in range(7))
FABRICATE = """
package secateurbench;
import java.nio.ByteBuffer;
import java.util.HashMap;
import org.apache.iceberg.*;
import org.apache.iceberg.types.*;
public class Fabricate {
  public static void append(Table table, int from, int to) {
    AppendFiles append = table.newFastAppend();
    Schema schema = table.schema();
    int[] ids = new int[10];
    for (int c = 0; c < 10; c++) ids[c] = ((Types.NestedField) schema.columns().get(c)).fieldId();
    for (int i = from; i < to; i++) {
      HashMap counts = new HashMap();
      HashMap zeros = new HashMap();
      HashMap low = new HashMap();
      HashMap high = new HashMap();
      for (int c = 0; c < 10; c++) {
        Integer id = Integer.valueOf(ids[c]);
        counts.put(id, Long.valueOf(1000L));
        zeros.put(id, Long.valueOf(0L));
        long first = i * 1000L;
        long last = first + 999L;
        if (c == 1) {
          low.put(id, text(first));
          high.put(id, text(last));
        } else if (c < 3) {
          low.put(id, number(c == 2 ? first * 1000000L : first));
          high.put(id, number(c == 2 ? last * 1000000L : last));
        } else {
          low.put(id, real(i % 977));
          high.put(id, real(i % 977 + 1.0));
        }
      }
      Metrics metrics = new Metrics(Long.valueOf(1000L), null, counts, zeros, new HashMap(), low, high);
      String path = table.location() + "/data/part-" + i + ".parquet";
      append.appendFile((DataFile) ((DataFiles.Builder) DataFiles.builder(table.spec())).withPath(path)
          .withFormat(FileFormat.PARQUET).withFileSizeInBytes(50000000L).withMetrics(metrics).build());
    }
    append.commit();
  }
  static ByteBuffer number(long v) { return Conversions.toByteBuffer(Types.LongType.get(), Long.valueOf(v)); }
  static ByteBuffer real(double v) { return Conversions.toByteBuffer(Types.DoubleType.get(), Double.valueOf(v)); }
  static ByteBuffer text(long v) {
    return Conversions.toByteBuffer(Types.StringType.get(), "name-" + (1000000000L + v));
  }
}
"""


class Maker:
    """Makes tables of files that do not exist."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(FABRICATE)
        loaded = compiler.getClassLoader().loadClass("secateurbench.Fabricate")
        (self._append,) = [m for m in loaded.getMethods() if m.getName() == "append"]
        self._spark, self._jvm = spark, jvm

    def table(self, name: str, files: int, commits: int = 1) -> str:
        """A table that was written in so many commits; each leaves a manifest, or some if it is large."""
        self._spark.sql(f"CREATE TABLE ice.bench.{name} ({COLUMNS}) USING iceberg")
        for i in range(commits):
            self.append(f"ice.bench.{name}", i * files // commits, (i + 1) * files // commits)
        return f"ice.bench.{name}"

    def append(self, name: str, first: int, last: int) -> None:
        table = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self._spark._jsparkSession, name)
        arguments = self._spark.sparkContext._gateway.new_array(self._jvm.java.lang.Object, 3)  # type: ignore[union-attr]
        arguments[0], arguments[1], arguments[2] = table, first, last
        self._append.invoke(None, arguments)
        self._spark.sql(f"REFRESH TABLE {name}")


def plan(spark: SparkSession, name: str, files: int, number: int) -> float:
    """Milliseconds of optimizer and physical planning, the table being loaded and the query analyzed before."""
    at = (number * 7919 + 13) % files * 1000
    frame = spark.sql(f"SELECT name, seen FROM {name} WHERE id BETWEEN {at} AND {at + 1500}")
    execution = frame._jdf.queryExecution()
    execution.analyzed()
    start = perf_counter()
    execution.executedPlan()
    return (perf_counter() - start) * 1000


def warm(spark: SparkSession, pruner: secateur.Pruner, name: str, files: int) -> dict[str, Any]:
    times: dict[bool, list[float]] = {True: [], False: []}
    for n in range(REPEATS + 3):
        for paused in (True, False) if n % 2 else (False, True):
            if paused:
                with pruner.paused():
                    ms = plan(spark, name, files, n)
            else:
                ms = plan(spark, name, files, n)
            if n >= 3:
                times[paused].append(ms)
    own, ours = median(times[True]), median(times[False])
    goal = 8 if files >= 100_000 else 3
    print(
        f"{files:,} files, warm: Iceberg {own:.1f} ms, secateur {ours:.1f} ms, {own / ours:.1f} times (goal {goal}); "
        f"of which deciding took {deciding(pruner):.1f} ms"
    )
    return {"iceberg_ms": own, "secateur_ms": ours, "ratio": own / ours}


def cold(spark: SparkSession, pruner: secateur.Pruner, tables: list[str], files: int) -> dict[str, list[float]]:
    """The first query on each table, in pairs with and without secateur; and how long loading took of it.

    Whoever is first in a pair warms the decoder of manifests up for the other, so they take turns in that too.
    """
    times: dict[str, list[float]] = {"iceberg_ms": [], "secateur_ms": [], "loading_ms": []}
    for i, name in enumerate(tables):
        if i % 4 in (1, 2):
            with pruner.paused():
                times["iceberg_ms"].append(plan(spark, name, files, 1))
        else:
            times["secateur_ms"].append(plan(spark, name, files, 1))
            times["loading_ms"].append(deciding(pruner))
    shown = {what: [round(ms) for ms in found] for what, found in times.items()}
    medians = {what: round(median(found)) for what, found in times.items()}
    print(f"{files:,} files, first query: {shown}, medians {medians} (goals: not slower, 100,000 loaded in 2,500 ms)")
    return times


def later(spark: SparkSession, pruner: secateur.Pruner, maker: Maker, name: str, files: int) -> list[float]:
    """Deciding after one more commit, three times over."""
    times = []
    for n in range(3):
        maker.append(name, files + n, files + n + 1)
        plan(spark, name, files, n)
        times.append(deciding(pruner))
    print(f"{files:,} files, one commit later: {[round(ms) for ms in times]} ms (goal 200 ms)")
    return times


def deciding(pruner: secateur.Pruner) -> float:
    summary = pruner.last
    return summary.planning.total if summary else 0.0


def memory(spark: SparkSession, pruner: secateur.Pruner, maker: Maker) -> dict[str, float]:
    """What the JVM and Arrow hold of a table, with statistics of three columns in Python, for a million files."""
    name = maker.table("held", HELD)
    heap, arrow = heap_used(spark), pa.total_allocated_bytes()
    spark.sql(
        f"SELECT id FROM {name} WHERE id < 5 AND name < 'b' AND seen < now()"
    )._jdf.queryExecution().optimizedPlan()
    held = {"jvm": heap_used(spark) - heap, "python": pa.total_allocated_bytes() - arrow}
    held = {what: size * 1_000_000 / HELD / 1e6 for what, size in held.items()}
    print(f"1,000,000 files, scaled up from {HELD:,}, MB: { ({what: round(size) for what, size in held.items()}) }")
    return held


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true")
    given, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="secateur-bench-") as home:
        spark = local_session(
            "secateur-bench", home, {"spark.driver.memory": "3g", "spark.secateur.budget.ms": "20000"}
        )
        maker = Maker(spark)
        pruner = secateur.attach(spark)
        results: dict[str, Any] = {}
        if given.memory:
            results["memory"] = memory(spark, pruner, maker)
        else:
            for i in range(WARM_UP):
                warm(spark, pruner, maker.table(f"first{i}", 1_000, 10), 1_000)
            results["one file"] = warm(spark, pruner, maker.table("one", 1), 1)
            for files, commits in SHAPES:
                tables = [maker.table(f"t{files}_{commits}_{i}", files, commits) for i in range(2 * PAIRS)]
                print(f"\n{files:,} files in {commits} commits")
                results[f"{files} files in {commits} commits"] = {
                    "cold": cold(spark, pruner, tables, files),
                    "warm": warm(spark, pruner, tables[0], files),
                    "one commit later": later(spark, pruner, maker, tables[0], files),
                }
        spark.stop()
    report("iceberg", results=results)


if __name__ == "__main__":
    main()

"""The installer: compiles the Java half with the Janino that every Spark carries, and is the only caller of it."""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from secateur.bridge.capabilities import NOT_ON_THE_CLASS_PATH, Capability
from secateur.errors import AttachError

_IMPORT = re.compile(r"^import .*;\n", re.MULTILINE)
_PACKAGE = re.compile(r"^package [\w.]+;\n", re.MULTILINE)
_CLASS, _FILES = "secateur.core.Bridge", "secateur.core.HadoopFiles"
_SHADED_AVRO, _AVRO = "org.apache.iceberg.shaded.org.apache.avro", "org.apache.avro"
"""Where Iceberg's runtime for Spark has Avro, and where Iceberg's separate libraries find it."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A folder of Java that is compiled on top of the core: what it is for, its entry, and a class that it needs."""

    folder: str
    name: str
    entry: str
    connector: str = ""


UNITS = (
    Unit("runtime", "run-time pruning", "secateur.runtime.SubqueryPruning"),
    Unit("driver", "driver reads", "secateur.driver.DriverLimits"),
    Unit("delta", "delta", "secateur.delta.DeltaFormat", "org.apache.spark.sql.delta.DeltaLog"),
    Unit("iceberg", "iceberg", "secateur.iceberg.IcebergFormat", "org.apache.iceberg.spark.source.SparkTable"),
)
"""Each works or not, whatever becomes of the others. The table of them all is :class:`Capability`."""

MOST_TABLES = 8
"""Of a query over more tables, Iceberg scans take no values at run time but those of their partitions."""

log = logging.getLogger("secateur")


class Callback:
    """What the JVM calls: a ``java.util.function.Function`` from request to answer."""

    def __init__(self, answer: Callable[[str], str]) -> None:
        self._answer = answer

    def apply(self, request: str) -> str:
        """Called by Py4J on a thread of its own."""
        return self._answer(request)

    class Java:
        """Read by Py4J."""

        implements = ("java.util.function.Function",)


def java_sources(folder: str = "core") -> dict[str, str]:
    """The Java files of a unit by name."""
    files = (f for f in (resources.files("secateur.bridge") / "java" / folder).iterdir() if f.name.endswith(".java"))
    return {f.name: f.read_text("utf-8") for f in sorted(files, key=lambda f: f.name)}


def one_unit(sources: dict[str, str]) -> str:
    """All sources as one compilation unit: Janino sees no class of another one but by a class loader."""
    package = next(iter(sources.values())).split("\n", maxsplit=1)[0] + "\n"
    imports = sorted({line for text in sources.values() for line in _IMPORT.findall(text)})
    bodies = [_IMPORT.sub("", _PACKAGE.sub("", text, count=1)) for text in sources.values()]
    return package + "".join(imports) + "\n".join(bodies)


class JvmBridge:
    """The Java half of one JVM, as Python sees it."""

    _known: ClassVar[WeakKeyDictionary[Any, JvmBridge]] = WeakKeyDictionary()

    def __init__(self, spark: SparkSession) -> None:
        gateway = spark.sparkContext._gateway
        jvm: Any = spark._jvm
        parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        core = _compile(jvm, parent, java_sources("core"))
        self._bridge: Any = _new(gateway, core.loadClass(_CLASS))
        self.files: Any = _new(gateway, core.loadClass(_FILES))
        """Files by Hadoop's file systems, see ``secateur.bridge.hadoop_files``."""
        self.loaders = {"core": core}
        """Where the classes of each unit are found."""
        self.capabilities = (Capability("filters"), *(self._add(jvm, parent, core, unit) for unit in UNITS))
        """What works in this JVM, and why the rest does not."""

    def _add(self, jvm: Any, parent: Any, core: Any, unit: Unit) -> Capability:
        """Compiles and tries a unit on top of the core."""
        if unit.connector and not _has_class(parent, unit.connector):
            return Capability(unit.name, NOT_ON_THE_CLASS_PATH)
        try:
            self.loaders[unit.folder] = _compile(jvm, core, java_sources(unit.folder))
            self._bridge.add(self.loaders[unit.folder], unit.entry)
        except (Py4JJavaError, OSError) as problem:
            why = first_line(problem)
            log.warning("%s does not work with this Spark: %s", unit.name, why)
            if unit.connector:
                self._bridge.isBroken(unit.folder, why)
            return Capability(unit.name, why)
        return Capability(unit.name)

    @classmethod
    def of(cls, spark: SparkSession) -> JvmBridge:
        """The bridge of the session's JVM, compiled once: Py4J caches methods by class name."""
        gateway = spark.sparkContext._gateway
        if gateway not in cls._known:
            cls._known[gateway] = cls(spark)
        return cls._known[gateway]

    def switch_on(self, spark: SparkSession, callback: Callback) -> None:
        """Installs the rules in the session's extensions and lets them ask ``callback``."""
        gateway: Any = spark.sparkContext._gateway
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        self._hurry(gateway)
        self._bridge.install(spark._jsparkSession)
        self._bridge.switchOn(callback, MOST_TABLES)

    def _hurry(self, gateway: Any) -> None:
        """Keeps TCP from holding back the end of a long message until the other side has heard the beginning."""
        gateway._callback_server.server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._bridge.hurry(JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient())

    def switch_off(self, spark: SparkSession) -> None:
        """Leaves the rules in place, inert; the session's own late rule is taken out."""
        self._bridge.switchOff()
        self._bridge.uninstall(spark._jsparkSession)

    def pause(self) -> None:
        """Makes the rules inert until ``resume``; may be nested."""
        self._bridge.pause()

    def resume(self) -> None:
        """Takes one ``pause`` back."""
        self._bridge.resume()

    def drain(self) -> list[dict[str, Any]]:
        """What the rules recorded since the last call."""
        records: list[dict[str, Any]] = json.loads(self._bridge.drain())
        return records

    def explain(self, spark: SparkSession, query: DataFrame | str) -> int:
        """Optimizes the query, runs nothing, and returns the number of its records."""
        number: int = self._bridge.explain(spark._jsparkSession, logical_plan(spark, query))
        return number

    def listings(self, spark: SparkSession, frame: DataFrame, *, paths: bool = False) -> list[dict[str, Any]]:
        """The scans of a data frame with their files, and where those are if that is asked for and not said there."""
        plan = frame._jdf.queryExecution().analyzed()
        found: list[dict[str, Any]] = json.loads(self._bridge.listings(spark._jsparkSession, plan, paths))
        return found


def _compile(jvm: Any, parent: Any, sources: dict[str, str]) -> Any:
    unit = one_unit(sources)
    if _SHADED_AVRO in unit and not _has_class(parent, f"{_SHADED_AVRO}.io.Decoder"):
        unit = unit.replace(_SHADED_AVRO, _AVRO)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.setTargetVersion(8)
    compiler.cook(unit)
    return compiler.getClassLoader()


def _new(gateway: Any, loaded: Any) -> Any:
    constructor = loaded.getDeclaredConstructor(gateway.new_array(gateway.jvm.java.lang.Class, 0))
    return constructor.newInstance(gateway.new_array(gateway.jvm.java.lang.Object, 0))


def first_line(problem: Exception) -> str:
    """The sentence of a Java error without its stack, that of the innermost if one wraps another."""
    java: Any = getattr(problem, "java_exception", None)
    if java is None:
        return str(problem).split("\n", maxsplit=1)[0]
    while java.getCause() is not None:
        java = java.getCause()
    return str(java.toString()).split("\n", maxsplit=1)[0]


def _has_class(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Py4JJavaError:
        return False
    return True


def logical_plan(spark: SparkSession, query: DataFrame | str) -> Any:
    """The query's logical plan; SQL text is parsed only, so that a command in it does not run."""
    if isinstance(query, str):
        return spark._jsparkSession.sessionState().sqlParser().parsePlan(query)
    return query._jdf.queryExecution().logical()


def require_classic(spark: object) -> SparkSession:
    """The session, if it has a JVM in this process; otherwise an error that says where to attach instead."""
    if isinstance(spark, SparkSession) and hasattr(spark, "_jsparkSession"):
        return spark
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise AttachError(
            "this is a Spark Connect session, its JVM is in another process: call secateur.attach in the process that "
            "runs the Connect server, and every client of it is pruned"
        )
    raise AttachError(f"attach needs a SparkSession, not {type(spark).__name__}: call secateur.attach(spark)")

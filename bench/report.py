"""What measurements have in common: the memory of the JVM, and the last line, results as JSON with their context."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession


def report(bench: str, **results: Any) -> None:
    """Prints the line."""
    context = {
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "cpus": os.cpu_count(),
    }
    print("\n" + json.dumps({"bench": bench, "context": context, **results}))


def heap_used(spark: SparkSession) -> float:
    """Bytes that the JVM holds after its garbage is gone."""
    jvm: Any = spark._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory())

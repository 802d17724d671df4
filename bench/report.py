"""What measurements have in common: the memory of the JVM, and results as JSON with their context.

Every measurement prints a last line of JSON. With ``RECORD=1`` in the environment it also writes it to a file in
``bench/records``, which :mod:`bench.tables` makes the tables of docs/measurements.md from.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession

import secateur

RECORDS = Path(__file__).parent / "records"


def report(bench: str, **results: Any) -> None:
    """Prints the line, and keeps it if asked to."""
    record = {"bench": bench, "context": context(), **results}
    print("\n" + json.dumps(record))
    if os.environ.get("RECORD", "0") not in ("", "0"):
        keep(record)


def keep(record: dict[str, Any], folder: Path = RECORDS) -> Path:
    """Writes a record to a file of its own, named after the measurement and the day."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['bench']}-{record['context']['date'][:10]}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return path


def context() -> dict[str, Any]:
    """When, of what, with what and on what it is measured; ``load`` is how busy the machine was (one a core)."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "secateur": secateur.__version__,
        "commit": _said("git", "-C", str(RECORDS.parent), "describe", "--always", "--dirty", "--exclude", "*"),
        "python": platform.python_version(),
        "java": _java(),
        "pyspark": pyspark.__version__,
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[1], 1),
    }


def _java() -> str:
    found = re.search(r'version "([^"]+)"', _said("java", "-version"))
    return found[1] if found else ""


def _said(*command: str) -> str:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (ran.stdout or ran.stderr).strip() if ran.returncode == 0 else ""


def heap_used(spark: SparkSession) -> float:
    """Bytes that the JVM holds after its garbage is gone."""
    jvm: Any = spark._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return float(runtime.totalMemory() - runtime.freeMemory())

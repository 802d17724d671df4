"""The last line of every measurement: its results as JSON, with the context of the run."""

from __future__ import annotations

import json
import os
import platform
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark


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

"""What a task of a collection does first: look whether what it needs is there.

This module travels to Spark's executors by value, so it imports nothing but Python's own.
"""

from __future__ import annotations

import importlib.util
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

NEEDS = ("numpy", "pyarrow")

# The number of the chunk, what was read of it as an Arrow stream, and the modules that are missing
Part = tuple[int, bytes, tuple[str, ...]]


def run(chunks: Iterable[tuple[int, Sequence[Any]]], packed: bytes, needs: Sequence[str]) -> Iterator[Part]:
    """Runs a packed function on each chunk, or tells which modules it would need.

    >>> list(run([(0, [])], b"", ["json", "no_such_module"]))
    [(0, b'', ('no_such_module',))]
    """
    missing = tuple(name for name in needs if importlib.util.find_spec(name) is None)
    work = None if missing else pickle.loads(packed)
    for number, chunk in chunks:
        if work is None:
            yield number, b"", missing
            continue
        for part in work([chunk]):
            yield number, part, ()


def cause_of(error: BaseException) -> str:
    """What a failed job says in one line: the error of Python's on the executor, if it is one.

    >>> cause_of(RuntimeError("Job aborted\\n  File x\\nModuleNotFoundError: No module named 'numpy'\\n\\nat java"))
    "ModuleNotFoundError: No module named 'numpy'"
    """
    text = str(error)
    said: list[str] = re.findall(r"^(?:\w+\.)*(\w*(?:Error|Exception): .*)$", text, re.MULTILINE)
    python = [line for line in said if not line.startswith(("PythonException", "SparkException", "Py4JJavaError"))]
    return (python or said or [text.strip().split("\n")[0]])[0][:300]

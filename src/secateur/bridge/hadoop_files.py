"""Files by Hadoop's file systems in Spark's own JVM, as Spark sees them: the other end of ``HadoopFiles.java``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from secateur.bridge.jvm import JvmBridge
from secateur.errors import SecateurError
from secateur.stats.arrow_buffers import read_arrow_buffers
from secateur.stats.remote_files import FileProblem, StorageError

_SECONDS = 60
"""How long one call may take: file systems try again by themselves, for minutes if need be."""


class HadoopFiles:
    """Files by the settings of a session, or by those that a table of it is read with."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def tails(self, table: str, files: Sequence[tuple[str, int]], most: int) -> list[bytes | FileProblem]:
        return self._bytes("tails", table, files, most=most)

    def contents(self, table: str, files: Sequence[tuple[str, int]]) -> list[bytes | FileProblem]:
        return self._bytes("contents", table, files)

    def states(self, table: str, paths: Sequence[str]) -> list[tuple[int, int] | FileProblem]:
        columns = self._columns("states", table, [[path] for path in paths])
        lengths, times = columns["length"].to_pylist(), columns["mtime"].to_pylist()
        return [
            problem or (length, time) for problem, length, time in zip(_problems(columns), lengths, times, strict=True)
        ]

    def listed(self, table: str, folder: str) -> list[tuple[str, int, int]]:
        return [(name, length, time) for name, length, time in self._call("list", table, path=folder)["files"]]

    def write(self, table: str, path: str, content: Any, *, direct: bool) -> None:
        self._call("write", table, bytearray(content), path=path, direct=direct)

    def delete(self, table: str, path: str) -> None:
        self._call("delete", table, path=path)

    def options(self, table: str) -> dict[str, str]:
        found: dict[str, str] = self._call("options", table)["options"]
        return found

    def _bytes(
        self, method: str, table: str, files: Sequence[tuple[str, int]], **more: int
    ) -> list[bytes | FileProblem]:
        columns = self._columns(method, table, list(files), **more)
        return [p or b for p, b in zip(_problems(columns), columns["bytes"].to_pylist(), strict=True)]

    def _columns(self, method: str, table: str, files: Sequence[Sequence[object]], **more: int) -> dict[str, Any]:
        return read_arrow_buffers(self._call(method, table, files=files, **more)["bulk"])

    def _call(self, method: str, table: str, *data: bytearray, **request: object) -> dict[str, Any]:
        wire = {**request, "millis": _SECONDS * 1000, **({"fp": table} if table else {})}
        try:
            session = self._spark._jsparkSession.sessionState()
            text = getattr(JvmBridge.of(self._spark).files, method)(session, json.dumps(wire), *data)
        except Py4JError as problem:
            java = getattr(problem, "java_exception", None)
            raise StorageError(str(java if java is not None else problem).split("\n")[0]) from problem
        except (SecateurError, OSError) as problem:
            raise StorageError(str(problem)) from problem
        answer: dict[str, Any] = json.loads(text)
        if "kind" in answer:
            raise StorageError(answer["text"])
        return answer


def _problems(columns: dict[str, Any]) -> list[FileProblem | None]:
    kinds, texts = columns["kind"].to_pylist(), columns["text"].to_pylist()
    return [None if kind is None else FileProblem(kind, text) for kind, text in zip(kinds, texts, strict=True)]

"""Files that are not on this machine's disks: what is asked of them, and which file systems do not answer.

Whoever gives them must see exactly what Spark sees: the bridge does, by Hadoop's file systems
(:mod:`secateur.bridge.hadoop_files`). A file system that fails is not asked again for a while, so that it costs later
queries nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from secateur.errors import SecateurError
from secateur.stats.collect.footers import split_path

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which a file system that failed is asked again."""
_APPEARS_WHOLE = frozenset({"s3a", "s3", "s3n", "gs", "oss", "obs", "cosn"})
"""Stores whose objects are there once they were written to the end; renaming one there copies it."""
_NOT_OBJECTS = frozenset({"file", "hdfs", "viewfs", "webhdfs", "swebhdfs"})


class StorageError(SecateurError):
    """A file system that cannot be read or written, with what it says."""


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Why one file could not be had: ``missing``, ``failed`` or ``interrupted``, and the words of its file system."""

    kind: str
    text: str


class RemoteFiles(Protocol):
    """Files by Hadoop's paths. ``table`` is the fingerprint of a table whose reader's settings count, or empty."""

    def tails(self, table: str, files: Sequence[tuple[str, int]], most: int) -> list[bytes | FileProblem]:
        """The last bytes, at most so many, of files with their lengths."""

    def contents(self, table: str, files: Sequence[tuple[str, int]]) -> list[bytes | FileProblem]:
        """All bytes of files with their lengths."""

    def states(self, table: str, paths: Sequence[str]) -> list[tuple[int, int] | FileProblem]:
        """The lengths and modification times of files as they are now."""

    def listed(self, table: str, folder: str) -> list[tuple[str, int, int]]:
        """The names, lengths and modification times of the files in a folder, which need not be there."""

    def write(self, table: str, path: str, content: Any, *, direct: bool) -> None:
        """Writes a file so that it appears whole."""

    def delete(self, table: str, path: str) -> None:
        """Deletes a file."""

    def options(self, table: str) -> dict[str, str]:
        """What a reader of Spark's needs to be told to see the files of a table as its own reader does."""


class PatientFiles:
    """Others' files, without those of file systems that failed within the last minute."""

    def __init__(self, files: RemoteFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self._files = files
        self._clock = clock
        self._failed: dict[tuple[str, str, str], tuple[float, str]] = {}
        self._lock = threading.Lock()

    def tails(self, table: str, files: Sequence[tuple[str, int]], most: int) -> list[bytes | FileProblem]:
        return self._each(
            "read", [path for path, _ in files], lambda at: self._files.tails(table, _of(files, at), most)
        )

    def contents(self, table: str, files: Sequence[tuple[str, int]]) -> list[bytes | FileProblem]:
        return self._each("read", [path for path, _ in files], lambda at: self._files.contents(table, _of(files, at)))

    def states(self, table: str, paths: Sequence[str]) -> list[tuple[int, int] | FileProblem]:
        return self._each("look", paths, lambda at: self._files.states(table, _of(paths, at)))

    def listed(self, table: str, folder: str) -> list[tuple[str, int, int]]:
        return self._one("list", folder, lambda: self._files.listed(table, folder))

    def write(self, table: str, path: str, content: Any) -> None:
        direct = split_path(path)[0] in _APPEARS_WHOLE
        self._one("write", path, lambda: self._files.write(table, path, content, direct=direct))

    def delete(self, table: str, path: str) -> None:
        self._one("delete", path, lambda: self._files.delete(table, path))

    def options(self, table: str) -> dict[str, str]:
        return self._files.options(table)

    def failed(self, verb: str, path: str) -> str:
        """Why files there are not asked for at the moment, empty if they are."""
        with self._lock:
            until, text = self._failed.get(_key(verb, path), (0.0, ""))
        return text if self._clock() < until else ""

    def forgive(self) -> None:
        """Asks all of them again: somebody waits for the answer."""
        with self._lock:
            self._failed.clear()

    def _one(self, verb: str, path: str, call: Callable[[], T]) -> T:
        if text := self.failed(verb, path):
            raise StorageError(text)
        try:
            return call()
        except StorageError as problem:
            self._remember(verb, path, str(problem))
            raise

    def _each(
        self, verb: str, paths: Sequence[str], call: Callable[[Sequence[int]], list[T | FileProblem]]
    ) -> list[T | FileProblem]:
        known = [self.failed(verb, path) for path in paths]
        found: list[T | FileProblem] = [FileProblem("failed", text) for text in known]
        asked = [at for at, text in enumerate(known) if not text]
        for at, each in zip(asked, call(asked) if asked else (), strict=True):
            found[at] = each
        good = {_key(verb, paths[at]) for at in asked if not _is_failure(found[at])}
        for at in asked:
            each = found[at]
            if isinstance(each, FileProblem) and _is_failure(each) and _key(verb, paths[at]) not in good:
                self._remember(verb, paths[at], each.text)
        return found

    def _remember(self, verb: str, path: str, text: str) -> None:
        with self._lock:
            self._failed[_key(verb, path)] = (self._clock() + PATIENCE, text)


def _of(values: Sequence[T], at: Sequence[int]) -> list[T]:
    return [values[each] for each in at]


def _key(verb: str, path: str) -> tuple[str, str, str]:
    scheme, authority, _ = split_path(path)
    return scheme, authority, verb


def _is_failure(found: object) -> bool:
    return isinstance(found, FileProblem) and found.kind == "failed"


def authority_of(path: str) -> str:
    """The file system of a path, as people name it.

    >>> authority_of("s3a://bucket/t/1.parquet")
    's3a://bucket'
    """
    scheme, authority, _ = split_path(path)
    return f"{scheme}://{authority}"


def is_local(path: str) -> bool:
    """Whether a path is on this machine's disks."""
    return split_path(path)[0] == "file"


def refusal(path: str, policy: str, *, asked: bool) -> str:
    """Why nothing is written there, empty if it may be: ``policy`` is the option, ``asked`` says that a user waits.

    >>> refusal("s3a://b/t", "auto", asked=True), refusal("file:/t", "auto", asked=False)
    ('', '')
    >>> refusal("s3a://b/t", "auto", asked=False)
    'queries do not write to object stores: run secateur.collect(spark, ...), or set spark.secateur.stats.write=always'
    """
    if policy == "never":
        return "spark.secateur.stats.write=never"
    if policy == "always" or asked or split_path(path)[0] in _NOT_OBJECTS:
        return ""
    remedy = "run secateur.collect(spark, ...), or set spark.secateur.stats.write=always"
    return f"queries do not write to object stores: {remedy}"

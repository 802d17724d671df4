"""The folder that a store keeps its segments in: on this machine's disks, or by Hadoop's file systems."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from secateur.stats.collect.footers import split_path
from secateur.stats.remote_files import FileProblem, PatientFiles, StorageError, is_local

_FRESH = 1.0
"""Seconds for which a listing serves: statistics and range-sets are in one folder."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file in the folder."""

    name: str
    length: int
    modified: int


class Place(Protocol):
    """What a store asks of its folder. Files are not changed once they are there."""

    def names(self) -> list[Stored]:
        """The files, oldest first; none if there is no such folder."""

    def read(self, files: Sequence[Stored]) -> list[pa.Buffer]:
        """Their contents; FileNotFoundError if one went away meanwhile."""

    def write(self, name: str, content: pa.Buffer) -> None:
        """A new file that appears whole."""

    def delete(self, name: str) -> None:
        """Gone, if it was there."""

    def set_aside(self, name: str) -> None:
        """Out of the way of the next reader, if that is possible."""


class LocalPlace:
    """A folder on this machine."""

    def __init__(self, home: str) -> None:
        self._home = split_path(home)[2]
        self._folder = f"{self._home}/v1"

    def names(self) -> list[Stored]:
        try:
            with os.scandir(self._folder) as entries:
                found = [(e.name, e.stat()) for e in entries if e.is_file()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        ordered = sorted(found, key=lambda each: (each[1].st_mtime_ns, each[0]))
        return [Stored(name, status.st_size, status.st_mtime_ns // 1_000_000) for name, status in ordered]

    def read(self, files: Sequence[Stored]) -> list[pa.Buffer]:
        contents = []
        for file in files:
            with open(f"{self._folder}/{file.name}", "rb") as source:
                contents.append(pa.py_buffer(source.read()))
        return contents

    def write(self, name: str, content: pa.Buffer) -> None:
        os.makedirs(self._folder, exist_ok=True)
        temporary = f"{self._folder}/.{uuid.uuid4().hex}"
        try:
            with open(temporary, "xb") as sink:
                sink.write(content)
                sink.flush()
                os.fsync(sink.fileno())
            os.replace(temporary, f"{self._folder}/{name}")
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        directory = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._folder}/{name}")

    def set_aside(self, name: str) -> None:
        os.makedirs(f"{self._home}/damaged", exist_ok=True)
        os.replace(f"{self._folder}/{name}", f"{self._home}/damaged/{name}")


class RemotePlace:
    """A folder elsewhere, as Spark sees it. ``table`` is the fingerprint of the table that it belongs to, if any."""

    def __init__(self, home: str, files: PatientFiles | None) -> None:
        self.table = ""
        self._home = home
        self._folder = f"{home}/v1"
        self._known = files
        self._listed: tuple[float, list[Stored]] = (0.0, [])

    @property
    def _files(self) -> PatientFiles:
        if self._known is None:
            raise StorageError(f"{self._home} can only be reached by Spark")
        return self._known

    def names(self) -> list[Stored]:
        until, known = self._listed
        if time.monotonic() < until:
            return known
        found = [Stored(*each) for each in self._files.listed(self.table, self._folder)]
        found.sort(key=lambda each: (each.modified, each.name))
        self._listed = (time.monotonic() + _FRESH, found)
        return found

    def read(self, files: Sequence[Stored]) -> list[pa.Buffer]:
        asked = [(f"{self._folder}/{file.name}", file.length) for file in files]
        found = self._files.contents(self.table, asked) if asked else []
        for (path, _), each in zip(asked, found, strict=True):
            if isinstance(each, FileProblem):
                self._listed = (0.0, [])
                raise FileNotFoundError(path) if each.kind == "missing" else StorageError(each.text)
        return [pa.py_buffer(each) for each in found if isinstance(each, bytes)]

    def write(self, name: str, content: pa.Buffer) -> None:
        self._files.write(self.table, f"{self._folder}/{name}", content)
        self._listed = (0.0, [])

    def delete(self, name: str) -> None:
        self._files.delete(self.table, f"{self._folder}/{name}")
        self._listed = (0.0, [])

    def set_aside(self, name: str) -> None:
        """Stays where it is: readers do not write there, and it is not believed anyway."""


def place_of(home: str, files: PatientFiles | None) -> LocalPlace | RemotePlace:
    """Local paths are read directly, which is quicker than to ask the JVM."""
    return LocalPlace(home) if is_local(home) else RemotePlace(home, files)

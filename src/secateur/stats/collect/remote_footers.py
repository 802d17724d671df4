"""Footers of files that are not on this machine: the JVM reads the ends of many at once, Python parses them.

A footer takes one request, or two if it is longer than what was read of the file. Whether the files are still those
that were listed is found out at the end, by listing their folders once more (rule S8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing.pool import ThreadPool

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from secateur.stats.collect.footers import footer_size, parse_footer, read_footers, same_state
from secateur.stats.collect.progress import Progress
from secateur.stats.remote_files import FileProblem, PatientFiles, StorageError, authority_of

TAIL = 64 << 10
_AT_ONCE, _LOOKED_AT = 256, 10_000

File = tuple[str, int, int]


def read_remote_footers(files: Sequence[File], remote: PatientFiles, table: str, bar: Progress) -> list[pa.Table]:
    """What ``read_footers`` tells of files by Hadoop's paths, of the table with that fingerprint.

    Raises a :class:`StorageError` if their file system as a whole cannot be read.
    """
    ordered = sorted(files)  # so that files of one folder are looked at together
    chunks = [ordered[at : at + _AT_ONCE] for at in range(0, len(ordered), _AT_ONCE)]
    tables, done = [], 0
    # Two: while one chunk is parsed here, another is read there.
    with ThreadPool(2) as pool:
        for found in pool.imap(lambda chunk: _chunk(chunk, remote, table), chunks):
            tables.append(found)
            done += pc.sum(pc.is_null(found["row_group"])).as_py()
            bar.update(done)
    return [_without_changed(pa.concat_tables(tables, promote_options="default"), remote, table)]


def _chunk(files: Sequence[File], remote: PatientFiles, table: str) -> pa.Table:
    found = {file[0]: footer for file, footer in read_footer_of(files, remote, table)}

    def footer(path: str, length: int, mtime: int) -> pq.FileMetaData:
        if isinstance(problem := found[path], str):
            raise OSError(problem)
        return problem

    return read_footers(files, footer)


def read_footer_of(
    files: Sequence[File], remote: PatientFiles, table: str
) -> Iterator[tuple[File, pq.FileMetaData | str]]:
    """The footer of each file, or why there is none."""
    for at in range(0, len(files), _AT_ONCE):
        some = files[at : at + _AT_ONCE]
        tails = _tails(some, remote, table)
        if all(isinstance(tail, FileProblem) for tail in tails) and (text := remote.failed("read", some[0][0])):
            raise StorageError(f"{authority_of(some[0][0])} cannot be read: {text}")
        for file, tail in zip(some, tails, strict=True):
            yield file, tail.text if isinstance(tail, FileProblem) else _parsed(tail)


def _parsed(tail: bytes) -> pq.FileMetaData | str:
    try:
        return parse_footer(tail)
    except (ValueError, OSError, pa.ArrowException) as error:
        return f"{type(error).__name__}: {error}"[:500]


def _tails(files: Sequence[File], remote: PatientFiles, table: str) -> list[bytes | FileProblem]:
    tails = remote.tails(table, [(path, length) for path, length, _ in files], TAIL)
    short = {at: size for at, size in _sizes(tails) if len(tails[at]) < size <= files[at][1]}  # type: ignore[arg-type]
    if short:
        again = remote.tails(table, [files[at][:2] for at in short], max(short.values()))
        for at, tail in zip(short, again, strict=True):
            tails[at] = tail
    return tails


def _sizes(tails: Sequence[bytes | FileProblem]) -> Iterator[tuple[int, int]]:
    for at, tail in enumerate(tails):
        if isinstance(tail, bytes) and tail[-4:] == b"PAR1":
            yield at, footer_size(tail)


def _without_changed(table: pa.Table, remote: PatientFiles, key: str) -> pa.Table:
    """The rows of files that are as they were listed; the others have an error instead."""
    read = table.filter(pc.and_(pc.is_null(table["row_group"]), pc.is_null(table["error"])))
    files = list(zip(*(read[name].to_pylist() for name in ("path", "length", "mtime")), strict=True))
    errors = changed_files(files, remote, key)
    if not errors:
        return table
    bad = pa.array(list(errors), pa.string())
    good = table.filter(pc.invert(pc.is_in(table["path"], value_set=bad)))

    def refuse(path: str, length: int, mtime: int) -> pq.FileMetaData:
        raise ValueError(errors[path])

    return pa.concat_tables(
        [good, read_footers([file for file in files if file[0] in errors], refuse)], promote_options="default"
    )


def changed_files(files: Sequence[File], remote: PatientFiles, table: str) -> dict[str, str]:
    """Why files are not, or no longer, those that are described here, by their paths."""
    errors: dict[str, str] = {}
    for at in range(0, len(files), _LOOKED_AT):
        some = files[at : at + _LOOKED_AT]
        states = remote.states(table, [path for path, _, _ in some])
        found = ((file[0], _change(file, state)) for file, state in zip(some, states, strict=True))
        errors.update({path: error for path, error in found if error})
    return errors


def _change(file: File, state: tuple[int, int] | FileProblem) -> str:
    if isinstance(state, FileProblem):
        return state.text
    try:
        same_state(file[1:], state, coarse=True)
    except ValueError as error:
        return str(error)
    return ""

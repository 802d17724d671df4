"""The statistics in use: which sources are known, what is missing and why, and collections in the background."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secateur.errors import WireError
from secateur.stats.formats.readers import READERS, Source
from secateur.stats.listing import Listing
from secateur.stats.registry import Ranges, Registry, StatisticsSettings
from tests.stats.lake import Lake, column, data

FILES = READERS["files"]
QUIET, EAGER = StatisticsSettings(collect=False), StatisticsSettings()


def empty(fingerprint: str) -> Source:
    wire = {"fp": fingerprint, "roots": ["file:/nowhere"], "dirs": [], "dir": [], "names": [], "len": [], "mtime": []}
    return Listing.from_wire(wire | {"pcols": [], "pvals": []})


def admitted(*fingerprints: str, needed: tuple[str, ...] = ()) -> Registry:
    registry = Registry(None)
    registry.admit([(empty(fingerprint), FILES) for fingerprint in fingerprints], needed)
    return registry


def filled(files: Lake, count: int = 3) -> Listing:
    for i in range(count):
        files.write(f"{i}.parquet", {"c": [i * 10, i * 10 + 5]})
    return files.listing()


def test_what_is_needed_and_not_known_is_told() -> None:
    registry = admitted("a", "b")
    assert registry.admit([], ["a", "c"]) == {"c"}
    assert registry.admit([(empty("c"), FILES)], ["a", "c"]) == set()
    found = registry.source("c")
    assert found is not None
    assert found.fingerprint == "c"
    assert registry.source("d") is None


def test_those_not_used_for_longest_are_forgotten_but_none_that_is_needed() -> None:
    registry = admitted(*(f"{i}" for i in range(64)))
    registry.admit([], ["0"])  # used just now
    assert registry.admit([(empty("new"), FILES)], ["new"]) == set()
    assert [f for f in ("0", "1", "2", "new") if registry.source(f) is None] == ["1"]
    many = [f"many {i}" for i in range(100)]
    assert registry.admit([(empty(f), FILES) for f in many], many) == set()
    assert all(registry.source(f) is not None for f in many)
    assert registry.source("0") is None


def test_relatives_are_other_versions_of_the_same_table() -> None:
    registry = admitted("delta:/t@1", "delta:/t@2", "delta:/u@1", "plain", "delta:/t")
    assert registry.relatives(["delta:/t@3"]) == ["delta:/t@1", "delta:/t@2", "delta:/t"]
    assert registry.relatives(["plain"]) == []


def test_a_source_that_is_known_already_stays_as_it_is(files: Lake) -> None:
    listing = filled(files)
    files.collect(listing)
    registry = Registry(None)
    registry.admit([(listing, FILES)], [listing.fingerprint])
    before = registry.table(listing.fingerprint, QUIET)
    registry.admit([(files.listing(), FILES)], [listing.fingerprint])
    assert registry.table(listing.fingerprint, QUIET) is before


def test_nothing_is_collected_unless_asked_for(files: Lake) -> None:
    listing = filled(files)
    registry = Registry(None)
    registry.admit([(listing, FILES)], [listing.fingerprint])
    assert registry.known(listing.fingerprint) is None  # not loaded yet
    assert registry.table(listing.fingerprint, QUIET).missing.all()
    registry.wait(1)
    assert not (files.root / "_secateur").exists()
    waiting = registry.waiting(listing.fingerprint, "t")
    assert waiting is not None
    assert waiting.code == "no-statistics"
    assert waiting.text.startswith("3 of 3 files of t have no statistics: run secateur.collect")


def test_a_collection_in_the_background(files: Lake) -> None:
    listing = filled(files)
    registry = Registry(None)
    registry.admit([(listing, FILES)], [listing.fingerprint])
    assert registry.table(listing.fingerprint, EAGER).missing.all()
    registry.wait(60)
    table = registry.table(listing.fingerprint, EAGER)
    assert not table.missing.any()
    assert column(table.files, data("c", "bigint")).high.to_pylist() == [5, 15, 25]
    assert registry.waiting(listing.fingerprint, "t") is None
    assert registry.known(listing.fingerprint) is table


def test_a_collection_that_cannot_help_is_not_started_again(files: Lake) -> None:
    filled(files, 2)
    path = files.root / "0.parquet"
    content, status = path.read_bytes(), path.stat()

    def fill(data: bytes) -> None:
        path.write_bytes(data)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    fill(b"x" * len(content))
    listing = files.listing()
    registry = Registry(None)
    registry.admit([(listing, FILES)], [listing.fingerprint])
    registry.table(listing.fingerprint, EAGER)
    registry.wait(60)
    assert registry.table(listing.fingerprint, EAGER).missing.tolist() == [True, False]
    waiting = registry.waiting(listing.fingerprint, "t")
    assert waiting is not None
    assert "1 of 2 files of t have no statistics" in waiting.text
    fill(content)  # a second collection would find it whole
    for _ in range(2):
        registry.table(listing.fingerprint, EAGER)
        registry.wait(60)
    assert registry.table(listing.fingerprint, EAGER).missing.tolist() == [True, False]
    assert registry.collect(listing, FILES, QUIET).files_read == 1  # unless somebody asks for it


def test_collecting_now(files: Lake) -> None:
    listing = filled(files)
    registry = Registry(None)
    report = registry.collect(listing, FILES, QUIET)
    assert (report.files_total, report.files_read) == (3, 3)
    again = registry.collect(listing, FILES, QUIET)
    assert (again.files_total, again.files_read) == (3, 0)
    assert not registry.table(listing.fingerprint, QUIET).missing.any()


def test_collecting_range_sets(files: Lake) -> None:
    listing = filled(files)
    registry = Registry(None)
    report = registry.collect(listing, FILES, QUIET, ranges=Ranges(10, ("c",)))
    assert (report.files_read, report.files_ranged) == (3, 3)
    found = registry.table(listing.fingerprint, QUIET).files.range_sets(data("c", "bigint"))
    assert found is not None
    assert found.lows.to_pylist() == [0, 5, 10, 15, 20, 25]


def test_another_session_sees_what_this_one_collected(files: Lake) -> None:
    listing = filled(files)
    Registry(None).collect(listing, FILES, QUIET)
    other = Registry(None)
    other.admit([(listing, FILES)], [listing.fingerprint])
    assert not other.table(listing.fingerprint, QUIET).missing.any()


def test_a_folder_of_its_own_for_statistics(files: Lake, tmp_path: Path) -> None:
    listing = filled(files)
    elsewhere = f"{tmp_path}/statistics"
    Registry(None).collect(listing, FILES, StatisticsSettings(folder=elsewhere))
    assert not (files.root / "_secateur").exists()
    for options, missing in ((StatisticsSettings(collect=False, folder=elsewhere), False), (QUIET, True)):
        registry = Registry(None)
        registry.admit([(listing, FILES)], [listing.fingerprint])
        assert registry.table(listing.fingerprint, options).missing.all() == missing


def test_an_unknown_source_has_nothing_to_wait_for() -> None:
    registry = admitted("a")
    assert registry.waiting("b", "t") is None
    assert registry.known("b") is None
    with pytest.raises(WireError, match="forgotten"):
        registry.table("b", QUIET)

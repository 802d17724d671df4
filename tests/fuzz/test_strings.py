"""Functions of strings against Spark: files by prefix, whose lines anyone can extend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.harness import Bench


def by_prefix() -> Sequence[pa.Table]:
    """Nine files: s starts with aa to cc in turn, t is one value a file, some of them long or not ASCII."""
    files = []
    for i, stem in enumerate(x + y for x in "abc" for y in "abc"):
        own = [stem + "1", stem + "5 ", stem + "9" * 70]
        one = (stem, stem.upper(), f" {stem} ", f"x{stem}x", "", "é" + stem, stem * 30, f"{stem}_", f"{stem}%")[i]
        files.append(pa.table({"s": own, "t": [one] * 3}))
    return files


SHARP = """
substring(s, 1, 2) = 'bb'
substring(s, 0, 2) IN ('aa', 'cc')
substring(s, 1, 1) > 'a'
left(s, 2) BETWEEN 'ab' AND 'ba'
left(left(s, 3), 2) = 'ca'
concat('x-', s) = 'x-bb1'
concat('x-', s) > 'x-bb'
'x-' || t || '-' || s LIKE 'x-aa-aa%'
rtrim(s) = 'bb5'
s RLIKE '^bb'
s RLIKE '^bb.*'
s RLIKE '^bb[15]'
s LIKE 'bb_'
startswith(substring(s, 1, 4), 'bb')
upper(t) = 'AA'
lower(t) = 'ab'
trim(t) = 'ac'
ltrim(t) = 'ac '
trim(BOTH 'x' FROM t) = 'ba'
length(t) = 0
length(t) > 4
endswith(t, 'x')
contains(t, 'bb')
t LIKE '%a_b%' OR t LIKE 'c%\\\\_'
t LIKE '_b%'
substring(t, 2, 1) = 'a'
octet_length(t) = 60
"""


def test_files_by_prefix_are_told_apart(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    """For each line the evaluator keeps exactly the files that hold a match (and, at most, the one beyond ASCII)."""
    bench = Bench(spark, pruner, tmp_path / "prefixes", by_prefix())
    lines = SHARP.strip().splitlines()
    judged = list(bench.judge(lines))
    assert [j.sql for j in judged] == lines
    ascii_ = np.arange(9) != 5
    assert [j.sql for j in judged if (j.may != j.some_true)[ascii_].any() or j.may.all()] == []
    assert not any(j.wrong_skip or j.wrong_must for j in judged)

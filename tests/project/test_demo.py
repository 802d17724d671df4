"""The demo: every query on three formats, side by side, with the same answer."""

from __future__ import annotations

import re

import pytest
from demo.__main__ import FORMATS, QUERIES

from tests.fixtures import SparkProcess


@pytest.mark.long
def test_it_shows_every_query_on_every_format(spark_process: SparkProcess) -> None:
    ran = spark_process("from demo.__main__ import main; raise SystemExit(main())")
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    for name in FORMATS:
        lines = re.findall(rf"^ +{name} +(\d+) files .* s +(\d+) files .* the same answer$", ran.stdout, re.MULTILINE)
        assert len(lines) == len(QUERIES)
        assert all(int(pruned) <= int(plain) for plain, pruned in lines)
        less = 2 if name == "parquet" else 1  # Delta and Iceberg leave out files of themselves
        assert sum(int(pruned) for _, pruned in lines) < sum(int(plain) for plain, _ in lines) / less

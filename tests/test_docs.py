"""The documentation: its examples run, its tables are complete, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.session.options import NAMES, Options, as_text, parse_option

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [p for p in PAGES if BLOCK.search(p.read_text())], ids=lambda p: p.name)
def test_the_examples_run(spark: SparkSession, pruner: secateur.Pruner, lake: Path, page: Path) -> None:
    trails = lake / "trails"
    trails.mkdir()
    for i in range(8):
        data = pa.table({"name": [f"Marked-{i}", f"Steep-{i}"], "altit": [i * 300, i * 300 + 50]})
        pq.write_table(data, trails / f"{i}.parquet")
    spark.read.parquet(str(trails)).createOrReplaceTempView("trails")
    names = {"spark": spark, "lake": str(lake), "secateur": secateur, "pruner": pruner}
    for block in BLOCK.findall(page.read_text()):
        exec(compile(block, str(page), "exec"), names)


def test_every_option_is_listed_with_its_default() -> None:
    page = (ROOT / "docs" / "options.md").read_text()
    rows = dict(re.findall(r"^\| `(spark\.secateur\.[a-z.]+)` \| (?:`(.*?)`)? *\|", page, re.MULTILINE))
    assert set(rows) == set(NAMES)
    for name, default in rows.items():
        field, parsed = parse_option(name, default)
        assert parsed == getattr(Options(), field), name
        assert as_text(getattr(Options(), field)) == default


def test_every_reason_code_is_listed() -> None:
    page = (ROOT / "docs" / "summary.md").read_text()
    listed = {
        code for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for code in re.findall(r"`([a-z-]+)`", row)
    }
    used = set()
    for source in [*ROOT.glob("src/secateur/**/*.py"), *ROOT.glob("src/secateur/**/*.java")]:
        text = source.read_text()
        used |= set(re.findall(r'Reason\(\s*"([a-z-]+)"', text))
        used |= set(re.findall(r'_failed\("([a-z-]+)"', text))
        used |= set(re.findall(r'\bcode = "([a-z-]+)"', text))
    assert len(used) > 15
    assert used <= listed


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_a_missing_java_gets_a_sentence_with_the_remedy(tmp_path: Path) -> None:
    check = [sys.executable, str(ROOT / "tools" / "check_machine.py")]
    none = subprocess.run(check, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert none.returncode == 1
    assert "no java on the PATH" in none.stderr
    assert "apt-get install openjdk-17" in none.stderr
    fake = tmp_path / "java"
    for version in (11, 25):
        fake.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.2\"' >&2\n")
        fake.chmod(0o755)
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        unfit = subprocess.run(check, env=path, capture_output=True, text=True, check=False)
        assert f"is Java {version}" in unfit.stderr
    wrong = subprocess.run(
        check, env={"JAVA_HOME": "/nowhere", "PATH": "/bin"}, capture_output=True, text=True, check=False
    )
    assert "JAVA_HOME is /nowhere" in wrong.stderr

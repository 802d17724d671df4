"""The documentation: its examples run, its tables are complete, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench import tables
from pyspark.sql import SparkSession
from tools import pictures, prose
from tools.examples import PAGES, alike, has_examples, make_lake, outputs

import secateur
from secateur.session.options import NAMES, Options, as_text, parse_option

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", [p for p in PAGES if has_examples(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_the_examples_run_and_print_what_the_page_says(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, page: Path
) -> None:
    make_lake(str(lake))
    spark.read.parquet(str(lake / "trails")).createOrReplaceTempView("trails")
    names = {"spark": spark, "lake": str(lake), "secateur": secateur, "pruner": pruner}
    for block, printed in outputs(page, names):
        if block["output"] is not None:
            assert alike(printed) == alike(block["output"]), f"run: python -m tools.examples {page.relative_to(ROOT)}"


def test_a_changed_output_is_noticed() -> None:
    assert alike("Query 1 reads 2 of 40 files (1 B of 2 B).") == alike("Query 7 reads 2 of 40 files (3 B of 9 B).")
    assert alike("Query 1 reads 2 of 40 files (1 B of 2 B).") != alike("Query 1 reads 3 of 40 files (1 B of 2 B).")


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    search = (tmp_path / "site" / "search" / "search_index.json").read_text()
    assert "Why was my query not pruned?" in search
    home = (tmp_path / "site" / "index.html").read_text()
    fetched = re.findall(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]+)', home)
    assert fetched == []


def test_the_prose_can_be_read() -> None:
    found = [(page.name, *what) for page in prose.PAGES for what in prose.complaints(page.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("word " * 30, "149 characters"),
        ("It is ts#5.\n", "expression id"),
        ("The values of which the first are read.\n", "sentence of its own"),
        ("line\n" * 11, "a paragraph of 11 lines"),
        (("word " * 15 + "\n") * 4, "a sentence of 60 words"),
    ],
)
def test_prose_that_cannot_be_read_is_noticed(text: str, what: str) -> None:
    assert what in str(list(prose.complaints(text)))
    assert not list(prose.complaints(f"```\n{text}\n```\n"))


def test_the_pictures_are_what_the_script_draws() -> None:
    drawn = {f"{name}.svg": draw().svg() for name, draw in pictures.PICTURES.items()}
    assert drawn == {path.name: path.read_text() for path in pictures.FOLDER.glob("*.svg")}


def test_the_measurements_are_those_of_the_records() -> None:
    assert tables.page(tables.PAGE.read_text()) == tables.PAGE.read_text(), "run: python -m bench.tables"


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


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("[!R]*.md")], ids=lambda p: str(p.relative_to(ROOT)))
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

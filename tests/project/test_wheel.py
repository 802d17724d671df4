"""The wheel: what is in it, and a first query in an environment that has nothing else of this folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import secateur

ROOT = Path(__file__).parent.parent.parent
FIRST_QUERY = """
import pathlib, sys, pyarrow as pa, pyarrow.parquet as pq, secateur
from pyspark.sql import SparkSession
for i in range(4):
    pq.write_table(pa.table({"n": [i, i]}), f"{i}.parquet")
here = str(pathlib.Path.cwd())
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
pruner = secateur.attach(spark)
secateur.collect(spark, here)
assert spark.read.parquet(here).where("n + 1 = 3").count() == 2
print("from", secateur.__file__)
print(pruner.last.files_kept, "of", pruner.last.files_total)
spark.stop()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.long
def test_it_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    info = f"secateur-{secateur.__version__}.dist-info/"
    assert wheel.name == f"secateur-{secateur.__version__}-py3-none-any.whl"
    assert all(name.startswith(("secateur/", info)) for name in names)
    inside = {name for name in names if not name.startswith(info)}
    source = ROOT / "src"
    kept = {path for path in (source / "secateur").rglob("*") if path.suffix in (".py", ".java", ".typed")}
    assert inside == {path.relative_to(source).as_posix() for path in kept}
    assert "secateur/py.typed" in inside
    assert sum(name.endswith(".java") for name in inside) > 30
    assert not any("test" in name.split("/") or "tests" in name.split("/") for name in names)


@pytest.mark.long
def test_a_first_query_in_an_empty_environment(wheel: Path, tmp_path: Path, spark_process: object) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    (tmp_path / "empty").mkdir()
    ran = subprocess.run(
        [python, "-I", "-c", FIRST_QUERY], cwd=tmp_path / "empty", capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert f"from {tmp_path}" in ran.stdout
    assert "1 of 4" in ran.stdout

"""What a complex condition implies reaches the readers of Delta and Iceberg as pushed filters."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from secateur.passes.filter import implied_predicates
from tests.fixtures import Same
from tests.formats.conftest import IceTables


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_readers_get_implied_conditions(
    spark: SparkSession,
    same: Same,
    ice_tables: IceTables,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format_: str,
) -> None:
    numbers = spark.range(0, 80, 1, 4)
    if format_ == "delta":
        numbers.write.format("delta").save(f"{tmp_path}/t")
        name, pushed = f"delta.`{tmp_path}/t`", "PushedFilters: [Or(LessThan(id,5)"
    else:
        name, pushed = ice_tables.table("id bigint", write__distribution_mode="none"), "filters=(id < 5 OR"
        numbers.writeTo(name).append()
    query = f"SELECT id FROM {name} WHERE id + 5 < 10"
    (whole,) = same(lambda: spark.sql(query)).summary.scans
    assert not whole.implied  # twenty rows are one page: there is nothing to skip
    spark.sql(f"INSERT INTO {name} SELECT -1")  # what is known of the files is looked at anew
    monkeypatch.setattr(implied_predicates, "PAGE_ROWS", -1)
    compared = same(lambda: spark.sql(query))
    assert len(compared.rows) == 6
    assert compared.files == 2
    (scan,) = compared.summary.scans
    assert scan.implied
    text = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
    assert pushed in text

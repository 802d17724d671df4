"""docs/functions.md: made from the code, complete, and with the names that Spark has."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession
from tools.function_notes import SECTIONS, notes
from tools.functions_table import PAGE, page

from secateur.evaluate.rules import RULES, casts

NOT_OF_THE_CLASS = ("floor", "ceil", "extract", "left", "trim", "timestampadd", "timestampdiff")
"""Syntax, and functions that Spark replaces by others when it analyses or optimizes a query."""


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "run: python -m tools.functions_table"


def test_a_rule_without_a_note_is_refused_with_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RULES, "Soundex", RULES["Upper"])
    with pytest.raises(ValueError, match=r"no note on the rules of Soundex: add a line each to .*notes\.py"):
        page()
    monkeypatch.undo()
    monkeypatch.delitem(RULES, "Upper")
    with pytest.raises(ValueError, match="notes on Upper but no rules"):
        page()
    monkeypatch.undo()
    monkeypatch.setitem(casts.CASTS, ("string", "integer"), casts.CASTS["integer", "integer"])
    with pytest.raises(ValueError, match="no note on the casts of string to integer"):
        page()


@pytest.mark.parametrize("line", ["Upper | upper(s) | of constants", "Upper | u | d | sometimes | range | never"])
def test_a_malformed_note_says_how_it_must_read(line: str) -> None:
    with pytest.raises(ValueError, match=r"must read: Spark's class \| SQL"):
        list(notes(line))


def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    """Each function of the SQL column is of the class beside it."""
    checked = 0
    for note in (note for text in SECTIONS.values() for note in notes(text)):
        for name in set(re.findall(r"\b([a-z_0-9]+)\(", note.sql)) - set(NOT_OF_THE_CLASS):
            described = "\n".join(row[0] for row in spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect())
            found = re.search(r"Class: \S*\.(\w+)", described)
            assert found, f"Spark has no function {name}"
            assert found[1].removesuffix("ExpressionBuilder") == note.function, name
            checked += 1
    assert checked > 60

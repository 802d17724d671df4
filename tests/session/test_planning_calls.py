"""A planning call that goes on after Python asked for something: what is remembered of it, and never mixed up."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.session import planner
from tests.session.test_planner import Asked, call, compared, four, ref, scan, skipped, where

__all__ = ["four"]


def shifted(value: int) -> dict[str, Any]:
    """A condition on a function that only Spark knows, of the column that is constant in each file."""
    return call("EqualTo", call("Xxhash", ref("b"), type_="bigint") | {"k": 0}, {"v": value, "t": "bigint"}) | {"k": 1}


def test_two_calls_at_once_are_not_mixed_up(four: dict[str, Any]) -> None:
    asked = Asked()
    one = asked.decide(where(compared("EqualTo", "a", 15), scan("files")))
    other = asked.decide(where(compared("EqualTo", "a", 35), scan("files")))
    assert one == other == {"need": ["files"], "have": []}
    assert skipped(asked.raw({"op": "continue", "call": 2, "listings": [four]}), 4) == [0, 1, 2]
    assert skipped(asked.raw({"op": "continue", "call": 1}), 4) == [0, 2, 3]
    assert asked.raw({"op": "continue", "call": 1})["code"] == "decode-failed"


def test_values_are_those_of_the_call_that_asked(four: dict[str, Any]) -> None:
    asked = Asked()
    one = asked.decide(where(shifted(7), scan("files")), listings=[four])
    other = asked.decide(where(shifted(9), scan("files")))
    assert one == other == {"evaluate": [{"k": 0, "cols": ["2"], "rows": [[0], [1], [2], [3]]}]}
    assert skipped(asked.raw({"op": "continue", "call": 2, "values": [[7, 8, 9, {"e": 1}]]}), 4) == [0, 1]
    assert skipped(asked.raw({"op": "continue", "call": 1, "values": [[7, 8, 9, {"e": 1}]]}), 4) == [1, 2]


def test_no_time_for_values(four: dict[str, Any]) -> None:
    asked = Asked()
    asked.decide(where(shifted(7), scan("files")), listings=[four])
    assert asked.raw({"op": "continue", "call": 1, "values": []}) == {"edits": []}


def test_a_call_that_was_forgotten_runs_unpruned(four: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "_CALLS", 1)
    asked = Asked()
    asked.decide(where(compared("EqualTo", "a", 15), scan("files")))
    asked.decide(where(compared("EqualTo", "a", 35), scan("files")))
    assert asked.raw({"op": "continue", "call": 1, "listings": [four]})["code"] == "decode-failed"
    assert skipped(asked.raw({"op": "continue", "call": 2, "listings": [four]}), 4) == [0, 1, 2]


def test_values_that_come_with_a_listing_that_is_missing_again(four: dict[str, Any]) -> None:
    asked = Asked()
    asked.decide(where(shifted(7), scan("files")), listings=[four])
    asked._planner._registry._entries.pop("files")  # as if other queries had pushed it out
    assert asked.raw({"op": "continue", "call": 1, "values": [[7, 8, 9, 7]]}) == {"need": ["files"], "have": []}
    assert skipped(asked.raw({"op": "continue", "call": 1, "listings": [four]}), 4) == [1, 2]

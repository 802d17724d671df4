"""Texts compared by their prefix keys compare as bytes do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.evaluate.prefix_keys import COMPARE, prefix_keys_of
from secateur.evaluate.value_range import Bound

# Few letters, so that many texts begin with one another; NUL is what a short head is filled up with.
TEXTS = st.one_of(
    st.text("\0ab", max_size=11).map(str.encode),
    st.text("a", min_size=6, max_size=11).map(str.encode),
    st.binary(max_size=10),
)


@given(st.lists(st.none() | TEXTS, max_size=12), TEXTS, st.sampled_from(sorted(COMPARE)), st.data())
def test_heads_are_in_the_order_of_the_texts(
    texts: list[bytes | None], literal: bytes, op: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(texts)))
    array = pa.array(texts, pa.binary()).slice(start)
    rest = texts[start:]
    bound = Bound(array, np.array([t is None for t in rest], np.bool_), prefix_keys_of(array))
    expected = [t is None or COMPARE[op](t, literal) for t in rest]
    assert np.broadcast_to(bound.can(op, literal), len(rest)).tolist() == expected
    places = np.array(data.draw(st.lists(st.sampled_from(range(len(rest))))) if rest else [], np.int64)
    assert np.broadcast_to(bound.at(places).can(op, literal), len(places)).tolist() == [expected[i] for i in places]


@pytest.mark.parametrize("texts", [[], [None], [b""], [b"", None, b""]])
def test_nothing_to_look_at(texts: list[bytes | None]) -> None:
    heads = prefix_keys_of(pa.array(texts, pa.binary()))
    assert heads.keys.tolist() == [0] * len(texts)
    assert heads.lengths.tolist() == [0] * len(texts)

"""LIKE patterns, as far as a sorted order of strings can tell: by their literal prefix, and in full on constants."""

from __future__ import annotations

import re
from typing import Literal as OneOf
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Rest: TypeAlias = OneOf["nothing", "anything", "something"]
"""What a pattern asks for after its literal prefix: the end, any text, or something that bounds cannot tell."""


def literal_prefix(pattern: str, escape: str) -> tuple[bytes, Rest] | None:
    r"""The text that every match starts with and what follows it, None for a pattern that Spark would refuse.

    >>> literal_prefix("abc%", "\\"), literal_prefix("abc", "\\"), literal_prefix("a_c%", "\\")
    ((b'abc', 'anything'), (b'abc', 'nothing'), (b'a', 'something'))
    >>> literal_prefix("50\\%%", "\\"), literal_prefix("a\\b", "\\")
    ((b'50%', 'anything'), None)
    """
    if len(escape) != 1:
        return None
    prefix: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            char = pattern[at + 1 : at + 2]
            if not char or char not in ("_", "%", escape):
                return None
            at += 1
        elif char in "_%":
            rest: Rest = "anything" if not pattern[at:].strip("%") and escape != "%" else "something"
            return "".join(prefix).encode(), rest
        if char == "\ufffd" or "\ud800" <= char <= "\udfff":
            # Spark matches decoded text, in which bytes that are no UTF-8 look like U+FFFD.
            return "".join(prefix).encode(), "something"
        prefix.append(char)
        at += 1
    return "".join(prefix).encode(), "nothing"


def after(prefix: bytes) -> bytes | None:
    r"""The least string above all that start with ``prefix``, None if there is none.

    >>> after(b"abc"), after(b"a\xff"), after(b"\xff")
    (b'abd', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def on_constants(pattern: str, escape: str, low: pa.Array, high: pa.Array) -> pa.Array | None:
    r"""Whether the one string of each entry matches, null where there is not one or it is not ASCII; None if unclear.

    >>> texts = pa.array([b"abc", b"ab\nc", b"ac"])
    >>> on_constants("a_%c", "\\", texts, texts).to_pylist()
    [True, True, False]
    """
    regex = _regex(pattern, escape)
    if regex is None or not pattern.isascii():
        return None
    constant = pc.if_else(pc.equal(low, high).fill_null(False), low, pa.scalar(None, low.type))
    return pc.match_substring_regex(ascii_text(constant), regex)


def ascii_text(values: pa.Array) -> pa.Array:
    """Bytes as text where they are ASCII, else null: beyond it Java and Arrow may differ on what a character is."""
    beyond = pc.match_substring_regex(values, r"[^\x00-\x7F]")
    return pc.if_else(beyond, pa.scalar(None, values.type), values).cast(pa.string())


def _regex(pattern: str, escape: str) -> str | None:
    """A regular expression for all of a string, None for a pattern that Spark would refuse."""
    parts = [r"(?s)\A"]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == escape:
            at += 1
            char = pattern[at : at + 1]
            if not char or char not in ("_", "%", escape):
                return None
            parts.append(re.escape(char))
        else:
            parts.append({"_": ".", "%": ".*"}.get(char) or re.escape(char))
        at += 1
    return "".join(parts) + r"\z"

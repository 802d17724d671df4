"""LIKE patterns, as far as a sorted order of strings can tell: by their literal prefix."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import TypeAlias

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

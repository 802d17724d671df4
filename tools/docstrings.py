"""Makes docstrings Markdown for the reference: examples become code blocks, roles become names. See mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_ROLE = re.compile(r":(?:func|class|mod|attr|meth):`~?([^`]+)`")


def as_markdown(text: str) -> str:
    """
    >>> print(as_markdown("Made by :func:`attach`."))
    Made by `attach`.
    """
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", _ROLE.sub(r"`\1`", text))


class Docstrings(griffe.Extension):
    """Rewrites each docstring before it is rendered."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

"""The errors that secateur raises on purpose: what was wrong, with which value, and what to do."""

from __future__ import annotations


class SecateurError(Exception):
    """Base of every error of secateur."""


class OptionError(SecateurError, ValueError):
    """An option has an unknown name or a value that it cannot take."""


class AttachError(SecateurError, RuntimeError):
    """The session given to ``attach`` is not one that secateur can work with."""


class WireError(SecateurError):
    """The JVM sent something that this version of secateur does not understand."""

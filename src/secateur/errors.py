"""The errors that secateur raises on purpose: what was wrong, with which value, and what to do."""

from __future__ import annotations


class SecateurError(Exception):
    """Base of every error of secateur.

    >>> issubclass(OptionError, SecateurError)
    True
    """


class OptionError(SecateurError, ValueError):
    """An option has an unknown name or a value that it cannot take.

    >>> from secateur.session.options import parse_options
    >>> parse_options({"enabled": "perhaps"})
    Traceback (most recent call last):
    secateur.errors.OptionError: spark.secateur.enabled = 'perhaps' is not valid: it takes true or false
    """


class AttachError(SecateurError, RuntimeError):
    """The session given to ``attach`` is not one that secateur can work with.

    >>> import secateur
    >>> secateur.attach("spark")
    Traceback (most recent call last):
    secateur.errors.AttachError: attach needs a SparkSession, not str: call secateur.attach(spark)
    """


class WireError(SecateurError):
    """The JVM sent something that this version of secateur does not understand."""

"""A bounded map: what was not used for longest goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The entries that were used last, as many as weigh no more than ``most`` together; safe to share among threads.

    The newest entry stays whatever it weighs.
    (``cachetools`` has no bound that may change, and no order to iterate in.)

    >>> recent: Recent[str, int] = Recent(2)
    >>> for name, value in (("a", 1), ("b", 2)):
    ...     recent.put(name, value)
    >>> recent.get("a")
    1
    >>> recent.put("c", 3)
    >>> recent.items()
    [('a', 1), ('c', 3)]
    """

    def __init__(self, most: int, weigh: Callable[[V], int] = lambda _: 1) -> None:
        self.most = most
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: K) -> V | None:
        """The value, which counts as used now; None if there is none."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def peek(self, key: K) -> V | None:
        """The value, without counting as a use."""
        with self._lock:
            return self._entries.get(key)

    def put(self, key: K, value: V, *, least: int = 1) -> None:
        """Sets a value and forgets the oldest entries, but never the ``least`` newest ones."""
        with self._lock:
            self.pop(key)
            self._entries[key] = value
            self._weight += self._weigh(value)
            self.trim(least=least)

    def setdefault(self, key: K, make: Callable[[], V], *, least: int = 1) -> V:
        """The value, made now if there is none; see :meth:`put` for ``least``."""
        with self._lock:
            if key not in self._entries:
                self.put(key, make(), least=least)
            self._entries.move_to_end(key)
            return self._entries[key]

    def pop(self, key: K) -> V | None:
        """Takes an entry out."""
        with self._lock:
            if key not in self._entries:
                return None
            value = self._entries.pop(key)
            self._weight -= self._weigh(value)
            return value

    def trim(self, *, least: int = 1) -> None:
        """Forgets the oldest entries until the rest weighs no more than it may."""
        with self._lock:
            while len(self._entries) > least and self._weight > self.most:
                _, value = self._entries.popitem(last=False)
                self._weight -= self._weigh(value)

    def items(self) -> list[tuple[K, V]]:
        """All entries, the one that was not used for longest first."""
        with self._lock:
            return list(self._entries.items())

    def values(self) -> list[V]:
        """Their values, in the same order."""
        with self._lock:
            return list(self._entries.values())

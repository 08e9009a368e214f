"""Least-recently-used cache with a maximum size, safe for several threads."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(collections.OrderedDict[K, V]):
    """Mapping that evicts its least recently used entries above a maximum size.

    Parameters
    ----------
    max_size : int
        Largest number of entries.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__()
        self._max_size, self._lock = max_size, threading.RLock()

    def put(self, key: K, value: V) -> V:
        """Store and return a value, as the most recently used one."""
        with self._lock:
            self[key] = value
            self.move_to_end(key)
            while len(self) > self._max_size:
                self.popitem(last=False)
        return value

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; a missing value is made while other threads wait."""
        with self._lock:
            try:
                value = self[key]
            except KeyError:
                return self.put(key, make())
            self.move_to_end(key)
            return value

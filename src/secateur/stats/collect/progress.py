"""A one-line progress bar on standard error, for work that takes long enough to be watched."""

from __future__ import annotations

import sys
import time


class Progress:
    """Files done, files a second, and the time left.

    >>> Progress(200, show=False).line(50, seconds=2.0)
    'secateur: reading footers [#######.......................] 50/200 files, 25/s, 6 s left'
    """

    WIDTH = 30

    def __init__(self, total: int, show: bool | None = None, what: str = "reading footers") -> None:
        self.total = total
        self.what = what
        self.show = sys.stderr.isatty() if show is None else show
        self._started = self._drawn = time.monotonic()

    def update(self, done: int) -> None:
        """Redraws the bar, at most ten times a second and not within the first half second."""
        now = time.monotonic()
        if self.show and now - self._started > 0.5 and now - self._drawn > 0.1:
            self._drawn = now
            sys.stderr.write("\r" + self.line(done, now - self._started))
            sys.stderr.flush()

    def close(self) -> None:
        """Wipes the bar, if one was drawn."""
        if self.show and self._drawn > self._started:
            sys.stderr.write("\r" + " " * 110 + "\r")
            sys.stderr.flush()

    def line(self, done: int, seconds: float) -> str:
        filled = self.WIDTH * done // max(1, self.total)
        bar = "#" * filled + "." * (self.WIDTH - filled)
        rate = done / max(seconds, 1e-9)
        left = f"{(self.total - done) / rate:.0f} s left" if done else "starting"
        return f"secateur: {self.what} [{bar}] {done}/{self.total} files, {rate:.0f}/s, {left}"

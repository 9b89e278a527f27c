"""Sizes of the measurements."""

from dataclasses import dataclass


@dataclass
class Settings:
    # Items in the source list.
    items: int
    # Lines in a file.
    lines: int
    rounds: int
    # Small sizes for everything: they show that all of it works, not how fast.
    short: bool

    # Capacity of the daemon's filter, which is half full.
    @property
    def capacity(self):
        return 1_000_000 if self.short else 100_000_000

    error_rate = 1e-8

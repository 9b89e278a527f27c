"""Sizes of the measurements."""

from dataclasses import dataclass


@dataclass
class Settings:
    # Number of items in the source list.
    items: int
    # Number of lines in a file.
    lines: int
    rounds: int
    # True for small sizes, which show that everything works. Their figures mean nothing.
    short: bool

    # Capacity of the daemon's filter, which is half full.
    @property
    def capacity(self):
        return 1_000_000 if self.short else 100_000_000

    error_rate = 1e-8

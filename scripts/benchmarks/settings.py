"""How much is measured."""

from dataclasses import dataclass


@dataclass
class Settings:
    # Items in the source list.
    items: int
    # Lines in a file.
    lines: int
    rounds: int
    # Everything on small sizes: it shows that all of it works, not how fast.
    short: bool

    # The filter that the daemon has, half full.
    @property
    def capacity(self):
        return 1_000_000 if self.short else 100_000_000

    error_rate = 1e-8

"""docs/benchmarks.md and its plots: everything in them comes from data.json."""

from .page import write

__all__ = ["write"]

"""Folders of the benchmarks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Items and half-full filters, made once and kept for the next run.
CACHE = ROOT / "target/bench"
DOCS = ROOT / "docs"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"

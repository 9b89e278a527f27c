"""Folders of the benchmarks."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Items and half-full filters, which are made once and kept for later runs.
CACHE = ROOT / "target/bench"
DOCS = ROOT / "docs"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"

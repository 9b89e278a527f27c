"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# What is made once and kept for the next run: items, a filter that is half full.
CACHE = ROOT / "target/bench"
DOCS = ROOT / "docs"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"

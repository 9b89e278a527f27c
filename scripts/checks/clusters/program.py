"""Program that is tested."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def program():
    """Returns the path in $URLSEEN, or builds a debug program and returns its path."""
    if "URLSEEN" not in os.environ:
        found = subprocess.check_output([ROOT / "scripts/checks/program"], text=True)
        os.environ["URLSEEN"] = found.strip()
    return os.environ["URLSEEN"]

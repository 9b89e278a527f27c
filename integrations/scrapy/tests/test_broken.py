"""Builds of this package that are broken on purpose. The tests must detect each of them.

A broken build is the package with a patch of `broken/`. The first lines of a patch name the test
that must fail, and the text of its failure. Without the patch, the test passes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from servers import URLSEEN

pytestmark = pytest.mark.faults

HERE = Path(__file__).parent
PATCHES = sorted((HERE / "broken").glob("*.patch"))


def test_each_rule_that_needs_a_broken_build_has_one():
    rules = {re.match("H[0-9]+", patch.read_text())[0] for patch in PATCHES}
    assert rules == {"H1", "H3", "H8"}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_broken_build_is_detected(tmp_path, patch):
    for name in ("src", "tests"):
        shutil.copytree(HERE.parent / name, tmp_path / name, ignore=no_bytecode)
    test, says = re.search("^Fails: (.*)\nSays: (.*)$", patch.read_text(), re.MULTILINE).groups()
    apply(patch, tmp_path)
    # A longer wait would not change the result of a broken build.
    broken = run(tmp_path, test, TEST_PATIENCE_S="5")
    assert broken.returncode == pytest.ExitCode.TESTS_FAILED, broken.stdout
    assert "1 failed" in broken.stdout and says in broken.stdout


def run(package: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a test of a copied package with the copy."""
    environment |= {"PYTHONPATH": str(package / "src"), "URLSEEN": str(URLSEEN)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", test],
        cwd=package,
        env={**os.environ, **environment},
        text=True,
        capture_output=True,
        check=False,
    )


def apply(patch: Path, package: Path) -> None:
    """Patches a copy of the package."""
    options = ["--strip=1", "--fuzz=0", "--no-backup-if-mismatch", "--batch", "--forward"]
    command = ["patch", *options, "--input", patch]
    done = subprocess.run(command, cwd=package, text=True, capture_output=True, check=False)
    assert done.returncode == 0, f"{patch.name} does not fit the package any more: {done.stdout}"


def no_bytecode(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]

"""Build of urlseen that is broken on purpose: a partition does not check the marks of unfiltered items.

A router pushes some items again after it was killed or replaced. With this build (rule R1), they
are repeated.
"""

import shutil
import subprocess

from .program import ROOT

PATCH = ROOT / "tests/chaos/broken/no-marks.patch"
SOURCES = ("Cargo.toml", "Cargo.lock", "crates", "src", "benches", "examples", "tests", "integrations")


def build():
    """Builds the broken program. Returns its path."""
    folder = ROOT / "target/broken-clusters"
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    copy = ["cp", "--recursive", "--preserve=timestamps", *SOURCES, tree]
    subprocess.run(copy, cwd=ROOT, check=True)
    patch = ["patch", "--quiet", "--strip=1", "--fuzz=0", "--no-backup-if-mismatch"]
    subprocess.run([*patch, "--input", PATCH], cwd=tree, check=True)
    command = ["cargo", "build", "--quiet", "--locked", "--bin", "urlseen"]
    subprocess.run([*command, "--target-dir", folder / "target"], cwd=tree, check=True)
    return folder / "target/debug/urlseen"

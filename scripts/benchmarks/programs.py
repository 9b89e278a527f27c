"""Functions that build and run urlseen and the measuring programs."""

import json
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from . import line
from .folders import CACHE, ROOT

URLSEEN = ROOT / "target/release/urlseen"


def build_urlseen():
    """Builds urlseen as for a release, with symbols, so that perf can name functions."""
    command = ["cargo", "build", "--profile", "bench", "--locked", "--quiet"]
    subprocess.run(command, cwd=ROOT, check=True)
    return URLSEEN


def build_revision(revision):
    """Builds urlseen of a revision, if it was not built before. Returns its path."""
    name = ["git", "rev-parse", "--short=12", "--verify", f"{revision}^{{commit}}"]
    found = subprocess.run(name, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    program = CACHE / f"urlseen-{found.stdout.strip()}"
    if not program.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as folder:
            tree, target = Path(folder) / "tree", Path(folder) / "target"
            subprocess.run(["git", "worktree", "add", "--detach", tree, revision], cwd=ROOT, check=True)
            try:
                command = ["cargo", "build", "--profile", "bench", "--locked", "--quiet"]
                subprocess.run([*command, "--target-dir", target], cwd=tree, check=True)
                shutil.copy(target / "release/urlseen", program)
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return program


def version(program):
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[1]


@cache
def build_bench(name):
    """Builds benches/NAME.rs and returns its path."""
    command = ["cargo", "bench", "--no-run", "--locked", "--quiet", "--bench", name]
    built = subprocess.run(
        [*command, "--message-format", "json"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )
    for row in built.stdout.splitlines():
        message = json.loads(row)
        if message.get("target", {}).get("name") == name and message.get("executable"):
            return message["executable"]
    raise RuntimeError(f"cargo built no program from benches/{name}.rs")


def collect(command):
    """Runs a program and returns the lines of data that it prints."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    lines = line.parse(done.stdout)
    if done.returncode != 0:
        # The figures that were printed before the failure are valid.
        why = f"{command[0]} ended with status {done.returncode}"
        if not lines:
            raise RuntimeError(why)
        lines.append(line.missing(lines[-1]["group"], "all later cases", why))
    return lines

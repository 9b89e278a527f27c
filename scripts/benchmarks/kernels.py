"""Sections `filter`, `growth`, `fingerprint`, `rules` and `python`: work without Redis."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from . import tools

INSIDE = Path(__file__).with_name("inside.py")
WHEEL = tools.CACHE / "wheel"


def filter(sizes, figures):
    program = tools.build_bench("filter")
    figures.add_lines(tools.output([program, "filter", sizes.keys, sizes.filter_rounds]))


def growth(sizes, figures):
    figures.add_lines(tools.output([tools.build_bench("filter"), "growth", sizes.grown]))


def fingerprint(sizes, figures):
    """Measures fingerprints in Rust and in Python in turn."""
    in_turn("fingerprint", "links of docs.python.org", sizes, figures)


def rules(sizes, figures):
    in_turn("rules", "links of docs.python.org, as items", sizes, figures)


def in_turn(section, group, sizes, figures):
    links, program = tools.crawled_links(), tools.build_bench("fingerprint")
    for _ in range(sizes.rounds):
        printed = tools.output([program, section, links]) + inside(section, links)
        for line in map(json.loads, printed.splitlines()):
            figures.add(group, line["case"], "ns/URL", line["value"])


def python(sizes, figures):
    """Measures filters through Python. Each has a process of its own."""
    kinds = ("urlseen, two-choice", "urlseen, native", "urlseen, exact", "rbloom", "set")
    for way in ("batches", "one by one"):
        group = f"{sizes.python_keys:,} URLs, {way}"
        for kind, _ in tools.in_turn(dict.fromkeys(kinds), sizes.few_rounds):
            values = json.loads(inside("filter", kind, way, sizes.python_keys))
            for unit, value in values.items():
                figures.add(group, kind, unit, value)


def inside(*arguments):
    """Runs inside.py with the Python package of urlseen."""
    wheel()
    environment = {**os.environ, "PYTHONPATH": str(WHEEL), "PYTHONDONTWRITEBYTECODE": "1"}
    return tools.output([sys.executable, INSIDE, *arguments], env=environment)


@cache
def wheel():
    """Builds the Python package as it is published, and installs it in a folder."""
    subprocess.run(["scripts/checks/wheel"], cwd=tools.ROOT, check=True, stdout=sys.stderr)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    [made] = (tools.ROOT / "target/wheels").glob("*.whl")
    tools.output([*pip, "--target", WHEEL, "--force-reinstall", made])

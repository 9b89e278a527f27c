"""Section `pipe`: `urlseen filter` beside other programs that remove repeated lines."""

import os
import shutil
import subprocess
import sys
from itertools import islice

from . import tools

CRATES = ("runiq", "huniq", "xuniq")
PACKAGES = ("uro==1.0.2", "urless==2.7")
PEERS = tools.CACHE / "peers"
# Number of lines for the peers in Python.
FEW = 100_000


def run(sizes, figures):
    count, (peers, slow) = sizes.lines, installed(figures)
    raw, read = urlseen("--raw"), urlseen()
    groups = {}
    for percent in (5, 70):
        lines, _ = tools.items("url", count, percent / 100)
        groups[f"lines, {percent} % new"] = (lines, count, {**raw, **peers})
    lines, distinct = tools.items("url", count)
    groups["URLs, 30 % new"] = (lines, count, read)
    few = tools.write(f"url-{count}-few", lambda out: write_few(lines, out))
    groups["URLs, few"] = (few, min(count, FEW), {**dict([*read.items()][-1:]), **slow})
    for group, (given, number, cases) in groups.items():
        printed = {}
        with tools.folder() as place:
            taken = place / "printed"
            for case, command in tools.in_turn(cases, sizes.few_rounds):
                seconds, used, peak = tools.timed(command, given, taken)
                figures.add(group, case, "lines/s", number / seconds)
                figures.add(group, case, "CPU s", used)
                figures.add(group, case, "peak MB", peak / 1e6)
                printed[case] = count_lines(taken)
        for case, lines in printed.items():
            figures.add(group, case, "lines printed", lines)
        check({case: lines for case, lines in printed.items() if case not in slow})
    figures.facts |= {"lines": count, "different requests": distinct, "few lines": FEW}


def write_few(lines, out):
    with open(lines, encoding="utf-8") as given:
        out.writelines(islice(given, FEW))


def urlseen(*options):
    """Returns the command of each number of threads."""
    command = [tools.URLSEEN, "filter", "--seed", "1", *options, "--threads"]
    cores = os.cpu_count() or 1
    name = " ".join(["urlseen filter", *options])
    return {f"{name}, {n} thread{'s' * (n > 1)}": [*command, n] for n in sorted({1, cores})}


def installed(figures):
    """Installs the peers. Returns the commands of the fast and of the slow ones."""
    for crate in CRATES:
        if not (PEERS / "bin" / crate).exists():
            install(figures, crate, ["cargo", "install", "--locked", "--root", PEERS, crate])
    scripts = PEERS / "python/bin"
    if not scripts.exists():
        pip = [sys.executable, "-m", "pip", "install", "--target", PEERS / "python"]
        install(figures, "uro, urless", [*pip, *PACKAGES])
    runiq, huniq, xuniq = (PEERS / "bin" / crate for crate in CRATES)
    python = ["env", f"PYTHONPATH={PEERS / 'python'}", sys.executable]
    fast = {
        "runiq": [runiq, "-"],
        "huniq": [huniq],
        "xuniq": [xuniq],
        "mawk '!seen[$0]++'": ["mawk", "!seen[$0]++"],
        "sort -u": ["sort", "-u"],
    }
    slow = {name: [*python, scripts / name] for name in ("uro", "urless")}
    return found(figures, fast, 0), found(figures, slow, -1)


def found(figures, commands, place):
    """Returns the commands whose program is installed. Its path is the word at `place`."""
    there = {case: command for case, command in commands.items() if shutil.which(command[place])}
    for case in commands.keys() - there.keys():
        figures.missing("pipe", case, "it is not installed")
    return there


def install(figures, name, command):
    try:
        tools.output(command)
    except subprocess.CalledProcessError as why:
        figures.missing("pipe", name, why)


def count_lines(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def check(printed):
    """Checks the numbers of printed lines. Filters with an error rate may print few lines less."""
    most = max(printed.values())
    for case, number in printed.items():
        if number < 0.99 * most:
            raise RuntimeError(f"{case} printed {number} lines, and another program {most}")

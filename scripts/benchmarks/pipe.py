"""Section `pipe`: `urlseen filter` beside other programs that remove repeated lines."""

import os
import shutil
import subprocess

from . import tools

CRATES = ("runiq", "huniq")
PEERS = tools.CACHE / "peers"


def run(sizes, figures):
    lines, distinct = tools.items("url", sizes.lines)
    ready = tools.write(f"fingerprints-{sizes.lines}", lambda out: write_fingerprints(lines, out))
    figures.facts |= {"lines": sizes.lines, "different requests": distinct}
    peers = installed(figures)
    for group, given in (("raw lines", lines), ("ready fingerprints", ready)):
        printed = {}
        with tools.folder() as place:
            taken = place / "printed"
            for case, command in tools.in_turn({**urlseen(), **peers}, sizes.few_rounds):
                seconds, used, peak = tools.timed(command, given, taken)
                figures.add(group, case, "lines/s", sizes.lines / seconds)
                figures.add(group, case, "CPU s", used)
                figures.add(group, case, "peak MB", peak / 1e6)
                printed[case] = count(taken)
        for case, number in printed.items():
            figures.add(group, case, "lines printed", number)
        check(printed, distinct, is_exact=given == ready)


def write_fingerprints(lines, out):
    """Writes the fingerprint of each line."""
    command = [tools.URLSEEN, "fingerprint", lines]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made:
        out.writelines(f"{row.split()[0]}\n" for row in made.stdout)
    if made.returncode:
        raise RuntimeError(f"urlseen fingerprint ended with status {made.returncode}")


def urlseen():
    """Returns the command of each number of threads."""
    command = [tools.URLSEEN, "filter", "--seed", "1", "--threads"]
    cores = os.cpu_count() or 1
    return {f"urlseen filter, {n} thread{'s' * (n > 1)}": [*command, n] for n in sorted({1, cores})}


def installed(figures):
    """Installs the peers. Returns the command of each."""
    for crate in CRATES:
        if not (PEERS / "bin" / crate).exists():
            command = ["cargo", "install", "--locked", "--quiet", "--root", PEERS, crate]
            try:
                tools.output(command)
            except subprocess.CalledProcessError as why:
                figures.missing("pipe", crate, why)
    runiq, huniq = (PEERS / "bin" / crate for crate in CRATES)
    commands = {
        "runiq -f quick": [runiq, "-f", "quick", "-"],
        "runiq -f compact": [runiq, "-f", "compact", "-"],
        "huniq": [huniq],
        "mawk '!seen[$0]++'": ["mawk", "!seen[$0]++"],
        "sort -u": ["sort", "-u"],
    }
    found = {case: command for case, command in commands.items() if shutil.which(command[0])}
    for case in commands.keys() - found.keys():
        figures.missing("pipe", case, f"{commands[case][0]} is not installed")
    return found


def count(path):
    with open(path, "rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def check(printed, distinct, is_exact):
    """Checks the numbers of printed lines. urlseen also removes URLs that are spelled otherwise."""
    for case, number in printed.items():
        # The error rates of urlseen and of `runiq -f compact` permit few losses.
        if number > distinct and (is_exact or case.startswith("urlseen")):
            raise RuntimeError(f"{case} printed {number} lines; {distinct} requests are different")
        if number < distinct * 0.99:
            raise RuntimeError(f"{case} printed {number} lines only, of {distinct} requests")

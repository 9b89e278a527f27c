"""Data of all sections, and the page and the plots that are made from it."""

import json
import os
import platform
import re
import tomllib
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from . import tools

TEMPLATE = Path(__file__).with_name("page.md.in")
CRATES = ("fastbloom", "qfilter", "url")
PACKAGES = ("Scrapy", "scrapy-redis", "w3lib", "rbloom")
# Group of the values that only a plot shows.
SAMPLES = "samples"


def read(path):
    return json.loads(path.read_text()) if path.exists() else {}


def put(path, name, command, figures):
    """Replaces the data of a section. Each line of data has its own line, for short diffs."""
    sections = read(path)
    about = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "commit": commit(),
        "command": command, "machine": machine(), "versions": versions(),
    }
    sections[name] = {**about, "facts": figures.facts, "lines": figures.lines()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumped(sections))


def dumped(sections):
    """Returns JSON with a line for each line of data."""
    text = json.dumps(dict(sorted(sections.items())), indent=1)
    return re.sub(r"\n {4,}| *\n {3}(?=\})", " ", text) + "\n"


def machine():
    model = re.search(r"^model name\s*: (.*)", Path("/proc/cpuinfo").read_text(), re.M)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GiB"


def commit():
    name = tools.output(["git", "rev-parse", "--short=12", "HEAD"]).strip()
    changes = tools.output(["git", "diff", "--name-only", "HEAD", "--", ".", ":!docs"])
    return f"{name} and changes" if changes else name


def versions():
    """Returns the versions of all programs that influence figures."""
    from importlib import metadata

    locked = tomllib.loads((tools.ROOT / "Cargo.lock").read_text())["package"]
    found = [tools.output([tools.URLSEEN, "--version"]).strip()]
    found.append(f"redis-server {tools.output(['redis-server', '--version']).split()[2][2:]}")
    found.append(f"Python {platform.python_version()}")
    found += (f"{it['name']} {it['version']}" for it in locked if it["name"] in CRATES)
    found += (f"{name} {metadata.version(name)}" for name in PACKAGES)
    return ", ".join(found)


def render(sections):
    """Returns the page: the template with tables in place of `{{section}}`."""

    def filled(found):
        return section_tables(found[1], sections.get(found[1]))

    return re.sub(r"\{\{(\w+)\}\}", filled, TEMPLATE.read_text())


def section_tables(name, section):
    """Returns the tables of a section, and a line with its sizes, command, date and machine."""
    if section is None:
        return "Not measured yet."
    groups = {}
    for line in section["lines"]:
        if line["group"] != SAMPLES:
            groups.setdefault(line["group"], []).append(line)
    tables = [f"**{group}**\n\n{table(lines)}" for group, lines in groups.items()]
    missing = section["facts"].get("missing", {})
    facts = [f"{fact}: {number(it)}" for fact, it in section["facts"].items() if it is not missing]
    facts += [f"not measured: {case}" for case in missing]
    run = f"`scripts/bench {name}`, {section['date']}, {section['commit']}, {section['machine']}"
    return "\n\n".join([*tables, f"*{'; '.join([*facts, run])}*"])


def table(lines):
    """Makes a table with a row for each case.

    The first column has lowest and highest values, and the second one compares it with that of the
    first case, in the same round. The third one has the medians of all other units.
    """
    units = list(dict.fromkeys(line["unit"] for line in lines))
    values = {(line["case"], line["unit"]): line["values"] for line in lines}
    cases = list(dict.fromkeys(line["case"] for line in lines))
    base, first = cases[0], units[0]
    others = [", ".join(units[1:])] if units[1:] else []
    heads = ["", first, f"{base} = 1", *others]
    rows = []
    for case in cases:
        measured = [values.get((case, unit)) for unit in units]
        medians = ", ".join(number(median(it)) if it else "–" for it in measured[1:])
        ratio = ratios(measured[0], values[base, first])
        rows.append([case, cell(measured[0]), number(median(ratio)), *([medians] if others else [])])
    shown = [f"| {' | '.join(row)} |" for row in [heads, *rows]]
    return "\n".join([shown[0], "|---" * len(heads) + "|", *shown[1:]])


def ratios(above, below):
    """Returns the ratio of each round."""
    if len(above) != len(below):
        return [median(above) / median(below)]
    return [a / b for a, b in zip(above, below)]


def cell(values):
    """Returns the median, with the lowest and highest value in brackets."""
    low, middle, high = (number(it) for it in (min(values), median(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def number(value):
    """Returns a number with three digits, or all digits of an integer."""
    if not isinstance(value, (int, float)) or isinstance(value, int):
        return f"{value:,}" if isinstance(value, int) else str(value)
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def plot(sections, folder):
    """Draws the longest batch in each interval while filters grow."""
    import matplotlib

    matplotlib.use("svg")
    # The same data gives the same file.
    matplotlib.rcParams["svg.hashsalt"] = "urlseen"
    from matplotlib import pyplot

    lines = sections.get("growth", {}).get("lines", [])
    samples = {(it["case"], it["unit"]): it["values"] for it in lines if it["group"] == SAMPLES}
    if not samples:
        return
    keys = [count / 1e6 for count in samples.pop(("keys", "keys"))]
    _, axes = pyplot.subplots(figsize=(8, 3.6), layout="tight")
    for (case, _), times in samples.items():
        axes.plot(keys, times, label=case)
    axes.set(yscale="log", xlabel="million keys", ylabel="longest batch, µs")
    axes.legend()
    pyplot.savefig(folder / "growth.svg", metadata={"Date": None})

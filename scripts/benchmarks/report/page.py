"""docs/benchmarks.md, made from the measured data."""

from ..line import find, median
from . import budget, crawl, goals, plots
from .limit import SERVED, limit, shares, unseen
from .table import groups, row, table
from .words import BUDGET, GOALS, INTRODUCTION, SECTIONS


def write(data, folder):
    """Writes the page beside `folder`, and its plots into `folder`. Returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots.draw(data, folder)
    rows = [INTRODUCTION, *first_section(data), "", GOALS, "", *goals.table(data)]
    if spent := budget.table(data):
        rows += ["", BUDGET, "", *spent]
    for name, (title, words) in SECTIONS.items():
        if name not in data.sections:
            continue
        rows += ["", f"## {title}", words, "", provenance(data, name)]
        if name in drawn:
            plot, file = drawn[name]
            rows += ["", f"![{plot}]({folder.name}/{file})"]
        rows += body(name, data.lines(name), data.facts(name))
    page = folder.parent / f"{folder.name}.md"
    page.write_text("\n".join(rows) + "\n")
    return page


def first_section(data):
    """Makes the table of machine and versions. Sections with other values show the differences."""
    first = reference(data)
    if not first:
        return []
    pairs = {**without_load(first["machine"]), **first["versions"]}
    return ["", row("", ""), "|---|---|", *(row(name, value) for name, value in pairs.items())]


def reference(data):
    """Returns the section whose machine and versions are at the top of the page."""
    return data.sections.get("pipe") or next(iter(data.sections.values()), None)


def without_load(machine):
    return {name: value for name, value in machine.items() if name != "load before"}


def provenance(data, name):
    section, first = data.sections[name], reference(data)
    words = [
        f"`{section['command']}`", section["date"], f"commit {section['commit']}",
        f"load before {section['machine']['load before']}",
    ]
    for part in ("machine", "versions"):
        here, there = without_load(section[part]), without_load(first[part])
        words += [f"{key} {value}" for key, value in here.items() if there.get(key) != value]
    return ", ".join(words) + "."


def body(name, lines, facts):
    rows = []
    for group, found in groups(lines).items():
        rows += ["", f"### {group[0].upper()}{group[1:]}"]
        if name == "pipe":
            rows += pipe(lines, group, found, facts)
        elif name == "crawl" and facts:
            rows += crawls(lines, group, facts)
        else:
            rows += table([line for line in found if not is_only_plotted(line)])
    return rows


def is_only_plotted(line):
    """Returns true for values of a curve. A table would show only their median."""
    return line["case"] == "quantiles" or line["case"].startswith("samples, ")


def crawls(lines, group, facts):
    """Makes the text and tables of a group of crawls."""
    words = (
        f"{facts['rounds']} rounds, {facts['pages']} pages of {facts['links']} links. The spiders"
        f" have {facts['packages']}."
    )
    return [words, "", *crawl.tables(lines, group)]


def pipe(lines, group, found, facts):
    """Makes the tables of a group of the pipe: all cases, then the threads and the memory."""
    known, rows = facts.get(group, {}), []
    if known:
        rows.append(
            f"{facts['items']:,} items of {known['mean bytes']} bytes (mean),"
            f" {known['distinct']:,} different requests."
        )
    best = limit(lines, group)
    if best:
        served = median(find(found, group, best, SERVED)[0]["values"])
        rows.append(
            f"The limit is the fastest mover that pushes {unseen(group)} %: *{best}*,"
            f" {served:.0f} ns of Redis an item."
        )
    threads = [line for line in found if ", threads " in line["case"]]
    memory = [line for line in found if "bytes" in line.get("unit", "")]
    rest = [line for line in found if line not in threads and line not in memory]
    rows += ["", *table(rest, {"share of the limit": shares(lines, group)})]
    for part in (threads, memory):
        if part:
            rows += ["", *table(part)]
    return rows

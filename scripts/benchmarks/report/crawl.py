"""Tables of the costs of whole crawls: absolute figures, and ratios to scrapy-redis."""

from ..line import find, ratios, values
from .figures import tenths
from .table import row

BASE, PASS_THROUGH, ASK = "scrapy-redis", "pass through", "ask"
COMMANDS, REDIS, SPIDER, WALL, URLSEEN = (
    "Redis commands a link", "Redis CPU, s", "spider CPU, s", "wall time, s", "urlseen CPU, s"
)
COMPARED = (COMMANDS, REDIS, SPIDER, WALL)
#: Numbers of spiders that share a crawl, and minimum number of rounds.
SPIDERS, ROUNDS = (1, 3), 11


def group(spiders):
    return f"{spiders} spider{'s' * (spiders > 1)}"


def tables(lines, group):
    """Makes the tables of a group: measured figures, then ratios to scrapy-redis."""
    units = (*COMPARED, URLSEEN)
    rows = [row("", *units), "|---" * (1 + len(units)) + "|"]
    for way in ways(lines, group):
        rows.append(row(way, *(cell(values(lines, group, way, unit)) for unit in units)))
    names = (name_of(unit) for unit in COMPARED)
    rows += ["", row(f"ratio to {BASE}", *names), "|---" * (1 + len(COMPARED)) + "|"]
    for way in ways(lines, group):
        if way != BASE:
            rows.append(row(way, *(cell(compared(lines, group, way, it)) for it in COMPARED)))
    return rows


def readme(lines):
    """Makes the table of docs/design/crawl.md: numbers of commands, and ratios to scrapy-redis."""
    names = (name_of(unit) for unit in COMPARED)
    rows = [row("spiders", "way", *names), "|---" * (2 + len(COMPARED)) + "|"]
    for spiders in SPIDERS:
        name = group(spiders)
        for way in ways(lines, name):
            ratio = [cell(compared(lines, name, way, unit)) for unit in COMPARED[1:]]
            rows.append(row(spiders, way, cell(values(lines, name, way, COMMANDS)), *ratio))
    return rows


def ways(lines, group):
    return [line["case"] for line in find(lines, group, None, COMMANDS)]


def compared(lines, group, way, unit):
    """Returns the ratio of a way to scrapy-redis in each round."""
    return ratios(values(lines, group, way, unit), values(lines, group, BASE, unit))


def cell(numbers):
    return tenths(numbers) if numbers else ""


def name_of(unit):
    """Returns the name of a ratio: the unit without its seconds."""
    return unit.removesuffix(", s")

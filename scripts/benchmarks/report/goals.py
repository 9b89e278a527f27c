"""Goals of urlseen beside the measured figures: the first table of the page."""

from dataclasses import dataclass

from ..line import find, median, ratios, values
from . import crawl
from .figures import figure
from .limit import limit, shares
from .table import groups, row

# Settings of urlseen, by the case's name.
CASES = {"urlseen": "", "urlseen, batches of 5000": ", batches of 5000"}
TAB, URL = "tab, 30 % unseen", "url, 30 % unseen"


@dataclass
class Goal:
    what: str
    # The goal in words, and as a limit of the median.
    words: str
    bound: float
    is_at_most: bool
    # The measured values; empty if nothing was measured.
    values: list
    # Text beside the figure.
    beside: str = ""

    def row(self):
        if not self.values:
            return row(self.what, self.words, "not measured", "")
        found = median(self.values)
        holds = found <= self.bound if self.is_at_most else found >= self.bound
        return row(self.what, self.words, figure(self.values) + self.beside, "yes" if holds else "**no**")


def table(data):
    rows = [row("measurement", "goal", "measured", "is met"), "|---|---|---|---|"]
    return [*rows, *(goal.row() for goal in goals(data))]


def goals(data):
    return [
        *throughput(data, TAB, "`tab` items, 30 % unseen", 0.6, 3.5),
        *throughput(data, URL, "`url` items, 30 % unseen", 0.35, 2),
        over_peer(data, URL, "`url` items, 30 % unseen", "scrapy-redis, its loop", 500),
        *crawls(data),
        *partitions(data),
        *fingerprints(data),
        *test_and_set(data),
        *growing(data),
        *stream(data),
        *python(data),
        *resident(data),
    ]


def throughput(data, group, what, share, times):
    lines = data.lines("pipe")
    reached = shares(lines, group) if limit(lines, group) else {}
    for case, how in CASES.items():
        words = f"at least {share} times the rate of the fastest mover"
        yield Goal(what + how, words, share, False, reached.get(case, []))
        yield over_peer(data, group, what + how, "RedisBloom, BF.MADD", times, case)


def over_peer(data, group, what, peer, times, case="urlseen"):
    ours = pick(data.lines("pipe"), group, case, "items/s")
    theirs = pick(data.lines("peers"), "peers", peer, "items/s")
    # The values are from different rounds, so only their medians can be compared.
    found = [median(ours) / median(theirs)] if ours and theirs else []
    return Goal(what, f"at least {times} times the rate of {peer}", times, False, found)


def crawls(data):
    """Yields the goals of crawls that pass through, with the figures of crawls that ask."""
    lines = data.lines("crawl")
    for group in map(crawl.group, crawl.SPIDERS):
        what = f"a crawl that passes through, {group}"
        ours, asking = (
            values(lines, group, way, crawl.COMMANDS) for way in (crawl.PASS_THROUGH, crawl.ASK)
        )
        words = f"at most 1.5 {crawl.COMMANDS}"
        yield Goal(what, words, 1.5, True, ours, beside(asking))
        for unit, bound in ((crawl.REDIS, 1), (crawl.SPIDER, 1.02), (crawl.WALL, 1.02)):
            ours, asking = (
                crawl.compared(lines, group, way, unit) for way in (crawl.PASS_THROUGH, crawl.ASK)
            )
            words = f"at most {bound} times scrapy-redis's {crawl.name_of(unit)}"
            yield Goal(what, words, bound, True, ours, beside(asking))


def partitions(data):
    """Yields the cost of an item in each divided crawl, compared with one that is not divided."""
    lines, group, unit = data.lines("partitions"), "partitions, tab, 30 % unseen", "ns/item in all"
    cases = [line["case"] for line in find(lines, group, None, unit)]
    for case in cases[1:]:
        ours, single = (values(lines, group, it, unit) for it in (case, cases[0]))
        what = f"processor time of an item, {case}"
        words = f"at most 1.1 times that of {cases[0]}"
        yield Goal(what, words, 1.1, True, ratios(ours, single))


def beside(asking):
    return f"; asking {figure(asking)}" if asking else ""


def fingerprints(data):
    lines = data.lines("kernels")
    ours = pick(lines, "real links", "fingerprint, scrapy", "ns/link")
    scrapy = pick(lines, "real links", "Scrapy", "ns/link")
    what = "URL to fingerprint, real links"
    yield Goal(what, "at most 300 ns on one core", 300, True, ours)
    yield Goal(what, "at least 100 times as fast as Scrapy", 100, False, ratios(scrapy, ours))


def python(data):
    lines, group = data.lines("python"), "fingerprints through Python"
    if not lines:
        return
    scrapy = values(lines, group, "Scrapy, RequestFingerprinter.fingerprint(request)", "ns")
    for what, times in (
        ("fingerprint(url)", 25), ("fingerprints(urls)", 80),
        ("Fingerprinter.fingerprint(request)", 5),
    ):
        ours = values(lines, group, f"urlseen, {what}", "ns")
        words = f"at least {times} times as fast as Scrapy"
        yield Goal(f"Python, {what}", words, times, False, ratios(scrapy, ours))
    group = "filters through Python"
    for kind in ("two-choice", "native"):
        for age in ("new", "seen"):
            ours, best = (
                values(lines, group, f"{name}, batches, {age} URLs", "ns")
                for name in (f"urlseen, {kind}", "rbloom")
            )
            what = f"Python, batches of {age} URLs, {kind}"
            yield Goal(what, "at least twice as fast as rbloom", 2, False, ratios(best, ours))
        ours, least = (
            values(lines, group, name, "bytes a URL") for name in (f"urlseen, {kind}", "rbloom")
        )
        words = "at most 1.3 times that of rbloom"
        yield Goal(f"Python, memory of {kind}", words, 1.3, True, ratios(ours, least))


def test_and_set(data):
    lines, group = data.lines("kernels"), "test-and-set 100M"
    limit = "the machine's limit, 2 blocks"
    time, bits = (
        {
            case: pick(lines, group, case, unit)
            for case in ("native", "two-choice", "fastbloom", limit)
        }
        for unit in ("ns/key", "bits/key")
    )
    what = "test-and-set, 100 million keys at 1e-8, 70 % seen"
    faster = ratios(time["fastbloom"], time["native"])
    yield Goal(what, "at least 6 times as fast as fastbloom", 6, False, faster)
    larger = ratios(bits["native"], bits["fastbloom"])
    yield Goal(what, "at most 1.16 times fastbloom's bits a key", 1.16, True, larger)
    words = "at most 2 times the time of the machine's limit"
    yield Goal(what, words, 2, True, ratios(time["native"], time[limit]))
    other = "two-choice, " + what
    ratio = ratios(time["two-choice"], time["native"])
    yield Goal(other, "at most the time of native, with its growth", 1, True, ratio)
    ratio = ratios(bits["two-choice"], bits["native"])
    yield Goal(other, "at most native's bits a key", 1, True, ratio)
    between, group = data.lines("between"), "test-and-set between other work"
    ours, machine = (
        pick(between, group, f"{case}, 4096 KiB between", "ns/key")
        for case in ("native, hashed before", limit)
    )
    what += ", with 4 MiB of other work between batches"
    yield Goal(what, words, 2, True, ratios(ours, machine))


def growing(data):
    """Yields the goals of the slowest batches in a thousand, and of the memory, for each size."""
    lines, unit = data.lines("growing"), "µs/batch"
    for line in find(lines, None, "growing, p99.9", unit):
        fixed = values(lines, line["group"], "of the final size, p99.9", unit)
        what = f"p99.9 of the times of a batch, two-choice, {line['group']} keys"
        words = "at most 2 times that of a filter of the final size"
        yield Goal(what, words, 2, True, ratios(line["values"], fixed))
    for group in groups(lines):
        sized = group.replace("growing to", "test-and-set")
        native = values(data.lines("kernels"), sized, "native", "bits/key")
        for case, most in (("mean", 1), ("most", 1.1)):
            used = values(lines, group, f"growing, {case} in the second half", "bits/key")
            if native and used:
                what = f"bits a key in the second half ({case}), two-choice, {group} keys"
                words = f"at most {most} times native's bits a key"
                yield Goal(what, words, most, True, ratios(used, native))


def stream(data):
    """Yields the goals of a stream through `urlseen filter`, if it was measured."""
    lines, facts = data.lines("stream"), data.facts("stream")
    if not facts:
        return
    distinct = facts["distinct"]
    what = f"a stream of {distinct:,} URLs, two-choice"
    of = lambda case, unit: values(lines, "stream", case, unit)
    for unit in ("seconds", "processor seconds"):
        ratio = ratios(of("two-choice", unit), of("native", unit))
        yield Goal(what, f"at most native's {unit}", 1, True, ratio)
    most = distinct * facts["error rate"]
    words = f"at most {most:,.0f} different URLs dropped"
    yield Goal(what, words, most, True, of("two-choice", "different URLs dropped"))
    words = "no repeated URL printed"
    yield Goal(what, words, 0, True, of("two-choice", "repeated URLs printed"))


def resident(data):
    pipe, latency = data.lines("pipe"), data.lines("latency")
    unit = "peak, bytes beyond the filter"
    used = pick(pipe, TAB, "urlseen", unit) + pick(pipe, URL, "urlseen", unit)
    yield Goal(
        "memory of the daemon beyond the filter's bits", "at most 64 MB", 64, True,
        [size / 1e6 for size in used],
    )
    what = "time of an item through an idle daemon"
    yield Goal(what, "at most 5 ms for 99 % of items", 5, True, pick(latency, "idle", "p99", "ms"))
    share = pick(latency, "idle", "daemon", "% of a core")
    yield Goal("processor time of an idle daemon", "at most 2 % of a core", 2, True, share)


def pick(lines, group, case, unit):
    """Returns the values of the first line whose case has that name, or else contains it."""
    found = [
        line for line in lines
        if line["group"] == group and line.get("unit") == unit and line.get("values")
    ]
    for is_it in (lambda name: name == case, lambda name: case in name):
        for line in found:
            if is_it(line["case"]):
                return line["values"]
    return []

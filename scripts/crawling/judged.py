"""Comparison of crawls with that of plain Scrapy: problems, and the table."""

from collections import Counter

HEADINGS = {
    "way": "",
    "processes": "processes",
    "pages": "pages",
    "not_found": "404s",
    "links": "links discovered",
    "unseen": "unseen",
    "dropped": "duplicates dropped",
    "seconds": "seconds",
    "processor_seconds": "processor seconds",
    "per_second": "requests a second",
    "dedup_bytes": "Redis memory for dedup",
    "redis_bytes": "Redis memory in all",
    "held": "requests held by the killed spider",
    "missed": "pages missed",
    "twice": "pages fetched twice",
}
ROUND_HEADINGS = {
    "seed": "seed",
    "pages": "pages",
    "spider_kills": "spiders killed",
    "daemon_kills": "daemons killed",
    "primary_kills": "primaries killed",
    "held": "held by killed spiders",
    "processing": "claimed by killed daemons",
    "again": "fetched again",
    "missed": "pages missed",
    "beyond": "fetched too often",
    "rejected": "rejected",
    "seconds": "seconds",
}


def row(found, plain):
    """Returns the figures of a crawl."""
    statuses = [status for _, status in found.done]
    unseen = len(found.popped)
    fetches = sum(found.fetched.values())
    return {
        "way": found.way,
        "processes": found.spiders,
        "pages": statuses.count(200),
        "not_found": statuses.count(404),
        "other": len(statuses) - statuses.count(200) - statuses.count(404),
        "links": found.links,
        "unseen": unseen,
        "dropped": found.links - unseen,
        "seconds": round(found.seconds, 1),
        "processor_seconds": round(found.processor_seconds, 1),
        "per_second": round(fetches / found.seconds, 1),
        "dedup_bytes": found.dedup_bytes,
        "redis_bytes": found.redis_bytes,
        "filter_bytes": found.filter_bytes,
        "held": len(found.held),
        "held_pages": sorted(found.held),
        "missed": len(set(plain.done) - set(found.done)),
        "missed_pages": sorted(page for page, _ in set(plain.done) - set(found.done)),
        "twice": sum(times > 1 for times in found.fetched.values()),
        "taken_by_the_killed_daemon": found.claimed,
    }


def round_row(seed, found, plain):
    """Returns the figures of a crawl with kills at random moments."""
    fetched = by_page(found.fetched)
    return {
        "seed": seed,
        "pages": len(found.done),
        "spider_kills": len(found.killed),
        "daemon_kills": found.daemon_kills,
        "primary_kills": found.primary_kills,
        "held": found.held.total(),
        "processing": found.claimed,
        "again": fetched.total() - len(fetched),
        "missed": len(set(plain.done) - set(found.done)),
        "beyond": len(too_often(fetched, found)),
        "rejected": found.rejected,
        "seconds": round(found.seconds, 1),
    }


def plain_problems(plain):
    """Returns the reasons why the crawl of plain Scrapy is no reference."""
    problems = [f"an error: {error}" for error in plain.errors]
    problems += told("pages not crawled once", many(plain.done))
    only_one = set(plain.done) ^ set(plain.fetched)
    problems += told("pages that only Scrapy or only the server has logged", only_one)
    problems += told("pages found and never finished", plain.lost)
    if set(plain.fetched.values()) != {1}:
        problems += told("pages fetched more than once", many(plain.fetched))
    return problems


def problems(found, plain):
    """Returns the problems of a crawl: lost pages, and pages that were fetched too often."""
    wrong = [f"an error: {error}" for error in found.errors]
    wrong += told("pages missed", set(plain.done) - set(found.done))
    wrong += told("pages that Scrapy does not know", set(found.done) - set(plain.done))
    wrong += told("pages found and never finished", found.lost)
    for killed in found.killed:
        left = killed.held - killed.done_by_others
        what = f"pages held by {killed.spider.name} when it was killed, and finished by no other"
        wrong += told(what, left)
    for what, counts in (
        ("finished", by_page(found.done)),
        ("popped", found.popped),
        ("fetched", by_page(found.fetched)),
    ):
        what = f"pages {what} more often than the kills explain"
        wrong += told(what, too_often(counts, found))
    wrong += told("pages fetched and not finished", set(found.fetched) - set(found.done))
    wrong += told("pages finished and not fetched", set(found.done) - set(found.fetched))
    pages = len({page for page, _ in found.done})
    if found.filter_keys != pages:
        wrong.append(f"the filter has {found.filter_keys} keys for {pages} pages")
    if found.waiting:
        wrong.append(f"{found.waiting} requests wait at the end")
    if found.rejected:
        wrong.append(f"urlseen has rejected {found.rejected} requests")
    return wrong


def aimless(held, taken):
    """Returns a problem if no kill hit a spider or a daemon during its work."""
    if held and taken:
        return []
    return ["no program was killed in the middle of its work: the site is too small for that"]


def by_page(counts):
    """Returns the counts without the statuses."""
    pages = Counter()
    for (page, _), times in counts.items():
        pages[page] += times
    return pages


def too_often(counts, found):
    """Returns the pages with a count above 1 plus the number of killed spiders that held them."""
    return {page for page, times in counts.items() if times > 1 + found.held[page]}


def many(counts):
    return {what for what, times in counts.items() if times > 1}


def told(what, pages):
    """Returns one line about the pages, if there are some."""
    if not pages:
        return []
    shown = ", ".join(map(str, sorted(pages)[:5]))
    return [f"{len(pages)} {what}: {shown}{', …' if len(pages) > 5 else ''}"]


def table(rows, headings=HEADINGS):
    """Returns the rows as a Markdown table."""
    lines = [list(headings.values())]
    lines += [[cell(row, name) for name in headings] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        # Words are at the left of a cell, numbers at the right.
        first, *others = zip(line, widths)
        padded = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        yield f"| {' | '.join(padded)} |"


def notes(rows, url):
    """Returns the notes below the table: filters outside Redis, and held pages."""
    for row in rows:
        if row.get("filter_bytes"):
            yield f"{row['way']}: the filter has {size(row['filter_bytes'])} of the daemon's memory"
        if row.get("held_pages"):
            names = ", ".join(page.removeprefix(url) for page in row["held_pages"])
            yield f"{row['way']}: held by the killed spider: {names}"


def cell(row, name):
    value = row[name]
    if name.endswith("_bytes"):
        return size(value) if value else "–"
    # A way without Redis has no process to kill.
    if name == "held" and row.get("redis_bytes") == 0:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value)


def size(count):
    for unit in ("B", "KB", "MB"):
        if count < 1000 or unit == "MB":
            return f"{count} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000

"""Whole crawls of urlseen beside scrapy-redis, as in scripts/bench-crawl."""

from ..crawls import Crawls, versions
from ..programs import URLSEEN
from ..report.crawl import ROUNDS, SPIDERS

PAGES, LINKS = 330, 38


def run(settings):
    pages, links = (40, 10) if settings.short else (PAGES, LINKS)
    # This section shows percentiles, which need more rounds.
    rounds = settings.rounds if settings.short else max(settings.rounds, ROUNDS)
    lines = []
    for spiders in SPIDERS:
        lines += Crawls(URLSEEN, pages, links, spiders, rounds).run()
    facts = {"rounds": rounds, "pages": pages, "links": links, "packages": versions()}
    return {"lines": lines, "facts": facts}

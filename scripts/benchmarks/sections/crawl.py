"""Whole crawls, urlseen beside scrapy-redis, as scripts/bench-crawl measures them."""

from ..crawls import Crawls, versions
from ..programs import URLSEEN
from ..report.crawl import ROUNDS, SPIDERS

PAGES, LINKS = 330, 38


def run(settings):
    pages, links = (40, 10) if settings.short else (PAGES, LINKS)
    # Percentiles need more rounds than the other sections.
    rounds = settings.rounds if settings.short else max(settings.rounds, ROUNDS)
    lines = []
    for spiders in SPIDERS:
        lines += Crawls(URLSEEN, pages, links, spiders, rounds).run()
    facts = {"rounds": rounds, "pages": pages, "links": links, "packages": versions()}
    return {"lines": lines, "facts": facts}

"""Fingerprints through Python, compared with those of Scrapy."""

from __future__ import annotations

import base64
import gzip
import json
import resource
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint as scrapy_fingerprint
from scrapy.utils.test import get_crawler
from w3lib.url import canonicalize_url

import urlseen
from urlseen.scrapy import Fingerprinter

VECTORS = Path(__file__).parents[3] / "tests/vectors"
ALGORITHMS = ("scrapy", "scrapy-2.6", "scrapy-redis")
LINKS = ["https://example.com/?b=2&a=1", "https://EXAMPLE.com?a=1&b=2#top", "http://a/ü?q=ä b"]


def vectors(name: str = "fingerprints") -> Iterator[dict[str, Any]]:
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt") as lines:
        next(lines)
        yield from map(json.loads, lines)


@pytest.mark.parametrize(
    ("name", "canonical", "least"),
    [("fingerprints", "w3lib-2.5", 5000), ("fingerprints-2.4", "w3lib-2.4", 1000)],
)
def test_each_fingerprint_equals_the_recorded_one_of_scrapy(
    name: str, canonical: str, least: int
) -> None:
    checked = 0
    for vector in vectors(name):
        body = base64.b64decode(vector.get("body_base64", ""))
        options = {
            "canonical": canonical,
            "keep_fragments": vector.get("keep_fragments", False),
            "verbatim_url": vector.get("verbatim_url", False),
        }
        for algorithm in ALGORITHMS:
            try:
                made = urlseen.fingerprint(
                    vector["url"], vector.get("method", "GET"), body, algorithm=algorithm, **options
                ).hex()
            except ValueError:
                made = None
            assert made == vector[algorithm], vector
        checked += 1
    assert checked > least


def test_a_batch_equals_single_fingerprints() -> None:
    urls = [
        it["url"]
        for it in vectors()
        if it["scrapy"] and it.keys() == {"url", "canonical", *ALGORITHMS}
    ]
    assert len(urls) > 2000
    for algorithm in ALGORITHMS:
        one_by_one = [urlseen.fingerprint(url, algorithm=algorithm) for url in urls]
        assert urlseen.fingerprints(urls, algorithm=algorithm) == one_by_one
        assert urlseen.fingerprints(iter(urls), algorithm=algorithm) == one_by_one
    assert urlseen.fingerprints([]) == []
    kept = urlseen.fingerprints(LINKS, keep_fragments=True)
    assert kept == [urlseen.fingerprint(link, keep_fragments=True) for link in LINKS]
    assert kept[1] != urlseen.fingerprint(LINKS[1])


def test_canonical_urls_equal_those_of_w3lib() -> None:
    for link in LINKS:
        assert urlseen.canonicalize(link) == canonicalize_url(Request(link).url)
        kept = canonicalize_url(Request(link).url, keep_fragments=True)
        assert urlseen.canonicalize(link, keep_fragments=True) == kept


#: Rules, and URLs with the URL that each of them equals.
RULES = [
    {"host": r"(^|\.)a\.x$", "drop_params": ["sid"], "fold": ["www", "trailing-slash"]},
    {"host": r"^a\.x$", "path": "^/list", "keep_params": ["page"]},
    {"host": r"^s\.x$", "drop_sessions": "2026-12", "ignore_values": ["v"]},
    {"fold": ["encoded-host"]},
]
EQUAL = {
    "https://www.a.x/b/?sid=1&utm_source=c": "https://a.x/b",
    "https://a.x/list/?sid=1&page=2&color=3": "https://a.x/list?page=2",
    "https://b.x/b/?sid=1&gclid=2": "https://b.x/b/?sid=1",
    "http://b.x/": "http://b.x/",
    "https://%73.x/p;jsessionid=1?v=2&PHPSESSID=3": "https://s.x/p?v=",
}


def test_rules_make_urls_the_same() -> None:
    rules = {"drop_tracking": "2026-11", "same": json.dumps(RULES)}
    for algorithm in ALGORITHMS:
        for url, same in EQUAL.items():
            expected = urlseen.fingerprint(same, algorithm=algorithm)
            assert urlseen.fingerprint(url, algorithm=algorithm, **rules) == expected
            assert urlseen.fingerprints([url], algorithm=algorithm, **rules) == [expected]
    assert urlseen.explain(next(iter(EQUAL)), **rules)["hashed"] == "https://a.x/b"
    with pytest.raises(ValueError, match="same: .*unknown field"):
        urlseen.fingerprint(LINKS[0], same='[{"hosts": "a"}]')
    with pytest.raises(ValueError, match="drop_tracking: .*2020-01.*2026-11"):
        urlseen.fingerprint(LINKS[0], drop_tracking="2020-01")


def test_bad_input_raises_an_error_of_its_kind() -> None:
    with pytest.raises(ValueError, match="no/scheme"):
        urlseen.fingerprint("no/scheme")
    with pytest.raises(ValueError, match="no/scheme"):
        urlseen.fingerprints([*LINKS, "no/scheme"])
    with pytest.raises(ValueError, match="no/scheme"):
        urlseen.canonicalize("no/scheme")
    with pytest.raises(ValueError, match="md5"):
        urlseen.fingerprint(LINKS[0], algorithm="md5")
    with pytest.raises(ValueError, match="surrogate"):
        urlseen.fingerprint("http://a/\ud800")
    with pytest.raises(TypeError):
        urlseen.fingerprint(b"http://a/")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        urlseen.fingerprints([LINKS[0], None])  # type: ignore[list-item]


def test_threads_compute_fingerprints_at_the_same_time() -> None:
    urls = [f"https://example.com/{number}?b=2&a=1" for number in range(2000)]
    expected, results = urlseen.fingerprints(urls), []
    threads = [
        threading.Thread(target=lambda: results.append(urlseen.fingerprints(urls)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


REQUESTS = [
    *map(Request, LINKS),
    Request("http://a/", method="POST", body=b"a=1"),
    Request("http://a/?b&a", method="put", body="ü"),
    Request("http://a/%7e?b=2&a=1", meta={"verbatim_url": True}),
    Request("http://a/", cookies={"a": "1"}, headers={"A": "b"}, cb_kwargs={"c": 1}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=repr)
def test_the_fingerprinter_computes_the_fingerprints_of_scrapy(request_: Request) -> None:
    crawler = get_crawler(
        settings_dict={"REQUEST_FINGERPRINTER_CLASS": "urlseen.scrapy.Fingerprinter"}
    )
    made = Fingerprinter.from_crawler(crawler).fingerprint(request_)
    assert made == scrapy_fingerprint(request_)


def test_the_fingerprinter_has_the_algorithm_of_its_setting() -> None:
    for algorithm in ALGORITHMS:
        settings = {"URLSEEN_FINGERPRINT_ALGORITHM": algorithm}
        fingerprinter = Fingerprinter.from_crawler(get_crawler(settings_dict=settings))
        made = fingerprinter.fingerprint(Request("http://a/?b&a"))
        assert made == urlseen.fingerprint("http://a/?b&a", algorithm=algorithm)
    with pytest.raises(ValueError, match="md5"):
        Fingerprinter.from_crawler(
            get_crawler(settings_dict={**settings, "URLSEEN_FINGERPRINT_ALGORITHM": "md5"})
        )


def test_an_explanation_names_each_step() -> None:
    explained = urlseen.explain("HTTPS://Example.com/?b=2&a=1#top")
    assert explained["canonical"] == "https://example.com/?a=1&b=2"
    assert explained["fingerprint"] == urlseen.fingerprint(LINKS[0]).hex()
    assert len(explained["steps"]) >= 3


def test_filters_with_rules_that_change_leave_no_memory_behind() -> None:
    def peak_after(rounds: range) -> int:
        for number in rounds:
            rules = [{"drop_params": [f"p{number}-{place}" for place in range(100)]}]
            fingerprint = Fingerprinter(same=rules).fingerprint(Request(LINKS[0]))
            assert urlseen.Filter(1000).add(fingerprint)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak_after(range(1000))
    # The rules of all later rounds have 24 MB.
    assert peak_after(range(1000, 10_000)) - before < 6 << 10

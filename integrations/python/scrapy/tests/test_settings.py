"""Wrong settings are refused, with the name of the setting."""

from __future__ import annotations

import pytest

from conftest import make_crawler
from urlseen.scrapy import DupeFilter
from urlseen.scrapy.client import Client


def test_the_defaults_fit_those_of_urlseen():
    client = Client(make_crawler({"URLSEEN_ASK_URL": "redis://a"}, "books"))
    assert client.key == "books:dupefilter"
    assert (client.when_away, client.wait_s) == ("wait", 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("URLSEEN_WHEN_AWAY", "sleep"),
        ("URLSEEN_WAIT_S", "long"),
        ("URLSEEN_WAIT_S", -1),
        ("URLSEEN_TIMEOUT_S", 0),
        ("URLSEEN_TIMEOUT_S", "nan"),
        ("URLSEEN_KEY", "%(crawl)s"),
        ("URLSEEN_KEY", "100%"),
        ("URLSEEN_DROP", [{"host": "^a$"}]),
    ],
)
def test_wrong_values_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        DupeFilter.from_crawler(make_crawler({"URLSEEN_ASK_URL": "redis://a", name: value}))

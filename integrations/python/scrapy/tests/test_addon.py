"""The add-on: one line in the settings of a project."""

from __future__ import annotations

import sys

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from urlseen.scrapy import Addon
from urlseen.scrapy.addon import SINGLE

NAMES = ("SCHEDULER", "DUPEFILTER_CLASS", "REQUEST_FINGERPRINTER_CLASS")
SCRAPYS = {name: Settings()[name] for name in NAMES}
FINGERPRINTER = {"REQUEST_FINGERPRINTER_CLASS": "urlseen.scrapy.Fingerprinter"}
PASS = {"URLSEEN_URL": "redis://a"}
ASK = {"URLSEEN_ASK_URL": "redis://a"}


@pytest.mark.parametrize(
    ("project", "changed"),
    [
        ({}, FINGERPRINTER | {"SCHEDULER": "urlseen.scrapy.LocalScheduler"}),
        (PASS, FINGERPRINTER | {"SCHEDULER": "urlseen.scrapy.Scheduler"}),
        (ASK, FINGERPRINTER | {"DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter"}),
        (ASK | {"DUPEFILTER_CLASS": "own.Filter"}, FINGERPRINTER),
        (
            PASS | {"REQUEST_FINGERPRINTER_CLASS": "own.Class"},
            {"SCHEDULER": "urlseen.scrapy.Scheduler"},
        ),
    ],
)
def test_what_the_project_does_not_set_is_set_and_logged(project, changed, caplog):
    caplog.set_level("INFO")
    settings = Settings(project)
    Addon().update_settings(settings)
    assert {name: settings[name] for name in NAMES} == SCRAPYS | changed | {
        name: value for name, value in project.items() if name in NAMES
    }
    assert "REQUEST_FINGERPRINTER_CLASS = " in caplog.text


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="URLSEEN_URL and URLSEEN_ASK_URL are both set"):
        Addon().update_settings(Settings(PASS | ASK))
    with pytest.raises(ValueError, match="SCHEDULER is 'scrapy_redis.scheduler.Scheduler'"):
        Addon().update_settings(Settings(PASS | {"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}))
    with pytest.raises(ValueError, match="set SCHEDULER = 'urlseen.scrapy.LocalScheduler'"):
        Addon().update_settings(Settings({"SCHEDULER": "urlseen.scrapy.Scheduler"}))


@pytest.mark.parametrize("command", SINGLE)
@pytest.mark.parametrize("project", [PASS, {}])
def test_scrapys_own_classes_stay_for_a_single_page(project, command, monkeypatch):
    words = ["python3", "/usr/bin/scrapy", "--nolog", command, "https://example.com/"]
    monkeypatch.setattr(sys, "orig_argv", words)
    own = {"SCHEDULER": "urlseen.scrapy.Scheduler", "DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter"}
    settings = Settings(project | own)
    with pytest.raises(NotConfigured):
        Addon().update_settings(settings)
    assert {name: settings[name] for name in NAMES} == SCRAPYS

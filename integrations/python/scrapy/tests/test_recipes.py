"""Recipes of README.md and docs/guides: the tests follow them word for word, during a crawl.

Only the ports and the size of a filter differ.
"""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from pages import PAGES
from servers import ROOT, URLSEEN, Daemon, free_port, until

EVERY_PAGE_ONCE = {f"/p/{n}": 1 for n in range(PAGES)}
SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}
BLOOMFILTER = {
    "SCHEDULER": "scrapy_redis_bloomfilter.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis_bloomfilter.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
    # The filter has 128 KiB instead of 128 MiB.
    "BLOOMFILTER_BIT": 20,
}


@dataclass
class Recipe:
    """Blocks of code in a section of a page, by language."""

    config: str = ""
    commands: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_page(cls, page: str, title: str) -> Recipe:
        text = (ROOT / page).read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert text, f"{page} has no section {title!r}"
        recipe = cls()
        for language, block in re.findall(r"(?ms)^```(\S*)$\n(.*?)^```$", text):
            match language:
                case "toml":
                    recipe.config += block
                case "sh":
                    recipe.commands += block.splitlines()
            if language == "python":
                for name, value in re.findall("(?m)^([A-Z_]+) = (.*)$", block):
                    recipe.settings[name] = ast.literal_eval(value)
        return recipe


@pytest.fixture
def follow(redis_server, tmp_path, monkeypatch):
    """Follows a recipe. Returns the running daemon, and the settings of the project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("URLSEEN_REDIS__URL", f"{redis_server.url}/0")
    with ExitStack() as stack:

        def steps(page: str, title: str) -> tuple[Daemon, dict[str, Any]]:
            recipe = Recipe.of_page(page, title)
            port = free_port()
            if recipe.config:
                config = recipe.config.replace(":6390", f":{port}").replace("bit = 30", "bit = 20")
                (tmp_path / "config.toml").write_text(config)
            *commands, last = recipe.commands
            words = {"urlseen": [URLSEEN], "redis-cli": ["redis-cli", "-p", str(redis_server.port)]}
            for command in commands:
                program, *arguments = shlex.split(command, comments=True)
                subprocess.run([*words[program], *arguments], check=True)
            assert last == "urlseen run"
            daemon = Daemon.of_config(tmp_path)
            stack.callback(daemon.close)
            urls = {"URLSEEN_URL": redis_server.url, "URLSEEN_ASK_URL": f"redis://127.0.0.1:{port}"}
            settings = recipe.settings
            return daemon, {name: urls.get(name, value) for name, value in settings.items()}

        yield steps


@pytest.mark.parametrize(
    ("page", "title", "project"),
    [
        ("docs/guides/scrapy-redis.md", "Move from scrapy-redis", SCRAPY_REDIS),
        ("docs/guides/scrapy-redis.md", "Move from scrapy-redis-bloomfilter", BLOOMFILTER),
        ("docs/guides/scrapy-redis.md", "Ask instead", SCRAPY_REDIS),
        ("docs/guides/scrapy.md", "Move from a JOBDIR", {"JOBDIR": "jobs/demo"}),
    ],
)
def test_a_running_crawl_can_be_moved(
    redis_server, site, start_crawl, follow, page, title, project
):
    if "JOBDIR" not in project:
        project = {**project, "REDIS_URL": redis_server.url}
    half = {**project, "CLOSESPIDER_PAGECOUNT": 30}
    assert start_crawl("Links", half, url=site.url).wait()["finish_reason"] != "finished"
    before = len(site.page_hits())
    assert 0 < before < PAGES

    _, settings = follow(page, title)
    crawl = start_crawl("Links", {**project, **settings}, url=site.url)
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    assert "ERROR" not in crawl.log
    missing = set(EVERY_PAGE_ONCE) - set(site.page_hits())
    if project.get("BLOOMFILTER_BIT"):
        # This filter has false positives.
        assert len(missing) <= 2
        assert max(site.page_hits().values()) == 1
    else:
        assert site.page_hits() == EVERY_PAGE_ONCE


@pytest.mark.parametrize("then", ["undo", "move"])
def test_a_trial_can_be_undone_or_become_a_move(redis_server, site, start_crawl, follow, then):
    project = {**SCRAPY_REDIS, "REDIS_URL": redis_server.url}
    part = {"CLOSESPIDER_PAGECOUNT": 20}
    start_crawl("Links", {**project, **part}, url=site.url).wait()
    before = len(site.page_hits())
    daemon, settings = follow("README.md", "Try it on a live crawl")
    start_crawl("Links", {**project, **settings, **part}, url=site.url).wait()
    assert before < len(site.page_hits()) < PAGES
    waiting = ["demo:discovered", "urlseen:{demo:discovered}:processing"]
    until(lambda: redis_server.client.exists(*waiting) == 0, "no item to wait")
    daemon.stop()

    settings = {}
    if then == "move":
        _, settings = follow("docs/guides/scrapy-redis.md", "Move from scrapy-redis")
    crawl = start_crawl("Links", {**project, **settings}, url=site.url)
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    assert site.page_hits() == EVERY_PAGE_ONCE


def test_a_new_crawl_starts(redis_server, site, start_crawl, follow):
    _, settings = follow("docs/guides/scrapy.md", "Begin a new crawl")
    crawl = start_crawl("Links", {**settings, "REDIS_URL": redis_server.url}, url=site.url)
    assert crawl.wait()["finish_reason"] == "finished", crawl.log
    assert site.page_hits() == EVERY_PAGE_ONCE


def test_the_settings_and_stats_of_the_package_are_in_its_pages():
    package = ROOT / "integrations/python"
    sources = "".join(path.read_text() for path in package.glob("python/**/*.py"))
    page = (package / "scrapy/README.md").read_text()
    page += (ROOT / "docs/guides/one-process.md").read_text()
    named = set(re.findall(r'"(URLSEEN_[A-Z_]+)"', sources))
    assert named and not {name for name in named if f"`{name}`" not in page}
    counted = set(re.findall(r'count(?:_stat)?\("([a-z_]+)"', sources))
    assert counted and not {name for name in counted if f"`urlseen/{name}`" not in page}

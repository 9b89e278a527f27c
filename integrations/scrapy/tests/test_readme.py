"""What README.md says about moving a project, done word for word in the middle of a crawl.

But for the ports: those of these tests are in their place.
"""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pages import PAGES
from servers import ROOT, URLSEEN, Daemon, free_port

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
    # 128 KiB instead of 128 MiB.
    "BLOOMFILTER_BIT": 20,
}


@dataclass
class Section:
    """The blocks of a section, by what they are."""

    config: str = ""
    commands: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_readme(cls, title: str) -> Section:
        text = (ROOT / "README.md").read_text().partition(f"\n### {title}\n")[2]
        assert text, title
        section = cls()
        for block in re.findall(r"(?m)(?:^    .*\n)+", re.split("\n##+ ", text)[0]):
            block = re.sub("(?m)^    ", "", block)
            if block.startswith("["):
                section.config += block
            elif re.match("[A-Z_]+ = ", block):
                # Another way to do the same comes behind it.
                if not section.settings:
                    section.settings = {
                        name: ast.literal_eval(value)
                        for name, value in re.findall("(?m)^([A-Z_]+) = (.*)$", block)
                    }
            else:
                section.commands += block.splitlines()
        return section


@pytest.mark.parametrize(
    ("title", "project"),
    [
        ("From scrapy-redis in five minutes", SCRAPY_REDIS),
        ("From scrapy-redis-bloomfilter", BLOOMFILTER),
        ("From a JOBDIR", {"JOBDIR": "jobs/demo"}),
    ],
)
def test_a_crawl_moves_in_the_middle(
    redis_server, site, start_crawl, tmp_path, monkeypatch, title, project
):
    monkeypatch.chdir(tmp_path)
    if "JOBDIR" not in project:
        project = {**project, "REDIS_URL": redis_server.url}
    half = {**project, "CLOSESPIDER_PAGECOUNT": 60}
    assert start_crawl("Links", half, url=site.url).wait()["finish_reason"] != "finished"
    before = len(site.page_hits())
    assert 0 < before < PAGES

    section = Section.of_readme(title)
    port = free_port()
    config = section.config.replace(":6390", f":{port}").replace("bit = 30", "bit = 20")
    (tmp_path / "config.toml").write_text(config)
    monkeypatch.setenv("URLSEEN_REDIS__URL", f"{redis_server.url}/0")
    daemon = None
    for command in section.commands:
        program, *arguments = command.split()
        if command == "urlseen run":
            daemon = Daemon.of_config(tmp_path)
            continue
        words = {"urlseen": [URLSEEN], "redis-cli": ["redis-cli", "-p", str(redis_server.port)]}
        subprocess.run([*words[program], *arguments], check=True)
    assert daemon is not None
    try:
        settings = {**project, **section.settings, "URLSEEN_URL": f"redis://127.0.0.1:{port}"}
        crawl = start_crawl("Links", settings, url=site.url)
        assert crawl.wait()["finish_reason"] == "finished", crawl.log
        assert "ERROR" not in crawl.log
    finally:
        daemon.close()
    missing = set(EVERY_PAGE_ONCE) - set(site.page_hits())
    if title == "From scrapy-redis-bloomfilter":
        # That filter is wrong at times.
        assert len(missing) <= 2
        assert max(site.page_hits().values()) == 1
    else:
        assert site.page_hits() == EVERY_PAGE_ONCE


def test_the_settings_of_the_package_are_in_its_readme():
    package = Path(__file__).parents[1]
    sources = "".join(path.read_text() for path in package.glob("src/**/*.py"))
    page = (package / "README.md").read_text()
    named = set(re.findall(r'"(URLSEEN_[A-Z_]+)"', sources))
    assert named and not {name for name in named if f"`{name}`" not in page}
    counted = set(re.findall(r'count(?:_stat)?\("([a-z_]+)"', sources))
    assert counted and not {name for name in counted if f"`urlseen/{name}`" not in page}

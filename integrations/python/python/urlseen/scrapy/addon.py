"""Add-on for the setting `ADDONS`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES, default_settings

from urlseen.scrapy.settings import logger, refusal

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Commands of Scrapy that fetch single pages: they must not take requests of the crawl.
SINGLE = ("bench", "check", "fetch", "parse", "shell", "view")
FINGERPRINTER = {"REQUEST_FINGERPRINTER_CLASS": "urlseen.scrapy.Fingerprinter"}
#: Scrapy's own classes for single pages.
SCRAPYS = {name: getattr(default_settings, name) for name in ("SCHEDULER", "DUPEFILTER_CLASS")}
ASK = {**FINGERPRINTER, "DUPEFILTER_CLASS": "urlseen.scrapy.DupeFilter"}
PASS = {**FINGERPRINTER, "SCHEDULER": "urlseen.scrapy.Scheduler"}
ALONE = {**FINGERPRINTER, "SCHEDULER": "urlseen.scrapy.LocalScheduler"}


class Addon:
    """Makes a project use urlseen, with one line:

        ADDONS = {"urlseen.scrapy.Addon": 500}

    The crawl then runs in this process, and survives a kill if it has a JOBDIR. With `URLSEEN_URL`,
    its requests pass through urlseen and this Redis. With `URLSEEN_ASK_URL` instead, Scrapy keeps its
    scheduler, and asks urlseen about each request. The add-on changes no setting that the project or the command line sets. For `scrapy shell` and other
    commands that fetch single pages, it puts Scrapy's own classes in place of those of this package.
    """

    @refusal()
    def update_settings(self, settings: BaseSettings) -> None:
        """Sets the classes of this package. Scrapy calls this method before the crawl.

        Raises `NotConfigured` for a command that fetches a single page, and `ValueError` if settings
        contradict each other.
        """
        passes, asks = bool(settings.get("URLSEEN_URL")), bool(settings.get("URLSEEN_ASK_URL"))
        if passes and asks:
            raise ValueError(
                "URLSEEN_URL and URLSEEN_ASK_URL are both set: set the first one for a crawl whose"
                " requests pass through urlseen, or the second one to ask urlseen"
            )
        if (command := _command()) in SINGLE:
            for name, default in SCRAPYS.items():
                if str(settings[name]).startswith("urlseen.scrapy."):
                    settings.set(name, default, settings.getpriority(name) or 0)
            raise NotConfigured(f"scrapy {command} does not take part in the crawl")
        chosen = PASS if passes else ASK if asks else ALONE
        scheduler, wanted = settings["SCHEDULER"], chosen.get("SCHEDULER", settings["SCHEDULER"])
        if not _is_free(settings, "SCHEDULER") and scheduler != wanted:
            raise ValueError(
                f"SCHEDULER is {scheduler!r}, so no request would pass through urlseen: remove this"
                f" setting, or set SCHEDULER = {wanted!r}{'' if passes else ', or URLSEEN_URL'}"
            )
        free = {name: value for name, value in chosen.items() if _is_free(settings, name)}
        for name, value in free.items():
            settings.set(name, value, "addon")
        said = ", ".join(f"{name} = {settings[name]!r}" for name in chosen)
        logger.info("urlseen uses %s", said)


def _is_free(settings: BaseSettings, name: str) -> bool:
    return (settings.getpriority(name) or 0) <= SETTINGS_PRIORITIES["addon"]


def _command() -> str | None:
    """Returns the command of the program `scrapy`, which removes it from `sys.argv`."""
    words = iter(sys.orig_argv)
    is_scrapy = any(Path(it).stem == "scrapy" for it in words)
    # Scrapy skips options before the command, too.
    return next((it for it in words if not it.startswith("-")), None) if is_scrapy else None

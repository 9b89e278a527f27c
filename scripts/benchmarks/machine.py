"""Description of the machine and of the versions of all programs."""

import os
import platform
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

from .folders import ROOT

CRATES = ("fastbloom", "redis", "sha1", "url")
PACKAGES = ("Scrapy", "w3lib", "scrapy-redis", "redis")


def machine():
    """Returns the properties of the machine by name."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled")
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": f"{memory / 2**30:.1f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "transparent huge pages": huge_pages.partition("[")[2].partition("]")[0],
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def processor():
    for row in read("/proc/cpuinfo").splitlines():
        name, _, value = row.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def versions():
    """Returns the versions of programs and packages by name."""
    return {
        "urlseen": said([ROOT / "target/release/urlseen", "--version"], 1),
        "rustc": said(["rustc", "--version"], 1),
        "redis-server": said(["redis-server", "--version"], 2).removeprefix("v="),
        "Python": platform.python_version(),
        "crates": ", ".join(crates()),
        "Python packages": ", ".join(packages()),
    }


def crates():
    """Returns the versions of crates that influence figures, from Cargo.lock."""
    locked = tomllib.loads(read(ROOT / "Cargo.lock"))["package"]
    return [f"{it['name']} {it['version']}" for it in locked if it["name"] in CRATES]


def packages():
    for name in PACKAGES:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            pass


def commit():
    """Returns the id of the commit, with a note if files differ from the commit."""
    name = git("rev-parse", "--short=12", "HEAD") or "unknown"
    changes = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"{name} and changes" if changes else name


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def said(command, word):
    """Runs a command, and returns the word at index `word` of its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()[word]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""

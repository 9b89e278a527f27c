"""Sites to crawl: documentation of Debian packages, and a generated site."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import generated

GENERATED = "generated"
#: Number of pages of the generated site, and of links on each page.
PAGES, LINKS = 300, 8

@dataclass(frozen=True)
class Site:
    """Site with the files of a package, below `/name/`. The page `first` leads to all of them."""

    package: str
    folder: Path
    first: str

    @property
    def name(self):
        return self.package

    def version(self):
        query = ["dpkg-query", "--show", "--showformat=${Version}", self.package]
        return subprocess.run(query, check=True, capture_output=True, text=True).stdout


class Generated(Site):
    """Generated site. Each page has links to the next page and to random other pages."""

    name = GENERATED

    def version(self):
        return f"{PAGES} pages of {LINKS} links"


SITES = {
    site.package: site
    for site in (
        Site("python3.11-doc", Path("/usr/share/doc/python3.11/html"), "index.html"),
        Site("git-doc", Path("/usr/share/doc/git-doc"), "index.html"),
        Site("debian-reference-en", Path("/usr/share/debian-reference"), "index.en.html"),
    )
}


def generate(folder):
    """Writes the files of the generated site."""
    folder = Path(folder) / GENERATED
    folder.mkdir()
    for number, page in enumerate(generated.pages(PAGES, LINKS, ".html")):
        (folder / f"{number}.html").write_bytes(page)
    return Generated("p", folder, "0.html")


def install(sites):
    """Installs missing packages."""
    missing = [site.package for site in sites if not (site.folder / site.first).exists()]
    if not missing:
        return
    if os.geteuid() != 0:
        sys.exit(f"{', '.join(missing)} missing; as root: apt-get install {' '.join(missing)}")
    for command in (["update", "--quiet"], ["install", "--yes", "--quiet", *missing]):
        # Standard output is for the table.
        subprocess.run(["apt-get", *command], check=True, stdout=sys.stderr)

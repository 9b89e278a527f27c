"""CHANGELOG.md: the entries of the next release, and of the releases so far."""

import re

from .failure import Failure

PAGE = "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"


def unreleased(tree):
    """Returns the entries of the section Unreleased."""
    page = (tree / PAGE).read_text()
    entries = re.split(r"^## ", page.partition(UNRELEASED)[2], flags=re.MULTILINE)[0].strip()
    if not entries:
        raise Failure(f"{PAGE} has no entry below {UNRELEASED.strip()!r}: nothing to release")
    return entries + "\n"


def release(tree, version, date):
    """Gives the section Unreleased the name of a release, and puts an empty section above it."""
    file = tree / PAGE
    released = f"{UNRELEASED}\n## {version} ({date})\n"
    file.write_text(file.read_text().replace(UNRELEASED, released, 1))

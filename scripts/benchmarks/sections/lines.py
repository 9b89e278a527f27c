"""`urlseen filter` beside other programs that remove repeated lines, by scripts/bench-filter."""

from ..folders import CACHE
from ..programs import collect


def run(settings):
    command = [
        "scripts/bench-filter", "--json", "--lines", str(settings.lines),
        "--rounds", str(min(settings.rounds, 3)), "--folder", str(CACHE),
    ]
    return {"lines": collect(command), "facts": {"lines": settings.lines}}

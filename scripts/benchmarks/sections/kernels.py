"""Fingerprints alone, and test-and-set alone."""

from ..line import missing
from ..programs import build_bench, collect


def run(settings):
    rounds = "2" if settings.short else "7"
    lines = part("fingerprints", ["scripts/bench-fingerprints", "--json", "--rounds", rounds])
    sizes = [] if settings.short else ["--large"]
    lines += part("filter", lambda: [build_bench("filter"), "--bench", *sizes])
    return {"lines": lines}


def part(name, command):
    """Returns the lines of a part, or a line with the reason if the part fails."""
    try:
        lines = collect(command() if callable(command) else command)
        return lines or [missing(name, "all of it", "it printed no figures")]
    except Exception as error:
        return [missing(name, "all of it", error)]

"""Fingerprints and the filter's test-and-set, each alone."""

from ..line import missing
from ..programs import build_bench, collect


def run(settings):
    rounds = "2" if settings.short else "7"
    lines = part("fingerprints", ["scripts/bench-fingerprints", "--json", "--rounds", rounds])
    sizes = [] if settings.short else ["--large"]
    lines += part("filter", lambda: [build_bench("filter"), "--bench", *sizes])
    return {"lines": lines}


def part(name, command):
    """Returns the lines of a part, or the reason for their absence. The other part goes on."""
    try:
        lines = collect(command() if callable(command) else command)
        return lines or [missing(name, "all of it", "it printed no figures")]
    except Exception as error:
        return [missing(name, "all of it", error)]

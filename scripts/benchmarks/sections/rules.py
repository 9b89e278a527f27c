"""The time that rules add to the reading of an item, by benches/fingerprint."""

from ..programs import build_bench, collect


def run(settings):
    rounds = "2" if settings.short else "7"
    arguments = ["--bench", "--rules", "--rounds", rounds]
    return {"lines": collect([build_bench("fingerprint"), *arguments])}

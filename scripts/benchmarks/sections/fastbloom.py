"""Test-and-set of a billion keys beside fastbloom, by benches/filter."""

from ..programs import build_bench, collect


def run(settings):
    sizes = [] if settings.short else ["--large"]
    return {"lines": collect([build_bench("filter"), "--bench", "--fastbloom", *sizes])}

"""Effect on the filter of other work between batches: benches/filter."""

from ..programs import build_bench, collect


def run(settings):
    return {"lines": collect([build_bench("filter"), "--bench", "--between"])}

"""What other work between batches does to the filter: benches/filter."""

from ..programs import build_bench, collect


def run(settings):
    return {"lines": collect([build_bench("filter"), "--bench", "--between"])}

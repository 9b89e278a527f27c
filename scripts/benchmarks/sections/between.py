"""Test-and-set with other work between the batches, by benches/filter."""

from ..programs import build_bench, collect


def run(settings):
    return {"lines": collect([build_bench("filter"), "--bench", "--between"])}

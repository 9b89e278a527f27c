"""Cost of the log, by benches/log.rs."""

from ..programs import build_bench, collect


def run(settings):
    items = min(settings.items, 3_000_000)
    lines = collect([build_bench("log"), str(items), str(settings.rounds)])
    return {"lines": lines, "facts": {"items": items}}

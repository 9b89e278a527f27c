"""Other filters for unseen URLs, by scripts/bench-peers."""

from ..programs import collect


def run(settings):
    rounds, items = str(settings.rounds), str(settings.items)
    command = ["scripts/bench-peers", "--items", items, "--rounds", rounds]
    if settings.short:
        command += ["--seconds", "0.5", "--held", str(settings.capacity // 2), "--no-memory"]
    return {"lines": collect(command)}

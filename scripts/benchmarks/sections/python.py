"""The Python package beside Scrapy and other filters, by scripts/bench-python."""

from ..programs import collect


def run(settings):
    command = ["scripts/bench-python", "--rounds", str(settings.rounds)]
    if settings.short:
        command += ["--keys", "100000", "--pages", "20"]
    return {"lines": collect(command)}

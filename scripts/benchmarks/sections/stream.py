"""Stream of generated URLs through `urlseen filter`."""

from .. import stream
from ..programs import URLSEEN


def run(settings):
    size = stream.SHORT if settings.short else stream.FULL
    found = stream.lines(size, URLSEEN)
    if wrong := "; ".join(stream.faults(found)):
        raise RuntimeError(wrong)
    facts = {"distinct": size.distinct, "repeated": size.repeated, "capacity": size.capacity}
    return {"lines": found, "facts": {**facts, "error rate": stream.ERROR_RATE}}

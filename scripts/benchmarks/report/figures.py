"""How figures are written."""

from ..line import median


def number(value):
    """Four digits: more would be noise."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.4g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:.3g}"


def figure(values):
    """The median; behind it, of more than one, lowest and highest."""
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def in_words(unit, values):
    """Unit and values as people like them: bytes that are many as megabytes."""
    if "bytes" in unit.lower() and max(map(abs, values)) >= 1e5:
        return unit.replace("bytes", "MB"), [value / 1e6 for value in values]
    return unit, values

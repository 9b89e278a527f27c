"""Formats of figures on the page."""

import statistics

from ..line import median


def number(value):
    """Writes four digits: more would be noise."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.4g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:.3g}"


def figure(values):
    """Writes the median and, if there are several values, the lowest and the highest."""
    if len(values) == 1:
        return number(values[0])
    return f"{number(median(values))} ({number(min(values))}–{number(max(values))})"


def tenths(values):
    """Writes the median and, if the values differ, the 10th and 90th percentile."""
    middle = number(median(values))
    if len(values) == 1:
        return middle
    quantiles = statistics.quantiles(values, n=10, method="inclusive")
    low, high = number(quantiles[0]), number(quantiles[-1])
    return middle if low == high else f"{middle} ({low}–{high})"


def in_words(unit, values):
    """Returns unit and values for the page. Large numbers of bytes become megabytes."""
    if "bytes" in unit.lower() and max(map(abs, values)) >= 1e5:
        return unit.replace("bytes", "MB"), [value / 1e6 for value in values]
    return unit, values

"""Lines of measured data. All measuring programs print them, and data.json holds them.

A line is a dictionary with `group`, `case`, `unit` and `values`: one value for each round. A line
without a measurement has the reason in `missing`, in place of unit and values. `note` says how a
case was measured.
"""

import json
import statistics


def line(group, case, unit, values):
    return {"group": group, "case": case, "unit": unit, "values": [rounded(v) for v in values]}


def missing(group, case, why):
    return {"group": group, "case": case, "missing": str(why)}


def rounded(value):
    """Rounds to five digits. Further digits would be noise."""
    return value if isinstance(value, int) else float(f"{value:.5g}")


def parse(text):
    """Returns the lines of data in the output of a program."""
    lines = []
    for row in text.splitlines():
        if not row.startswith("{"):
            continue
        found = json.loads(row)
        if "group" in found and "case" in found and ("values" in found or "missing" in found):
            lines.append(found)
    return lines


def find(lines, group=None, case=None, unit=None):
    """Returns the measured lines of a group, case and unit. `None` matches all."""
    return [
        found
        for found in lines
        if "values" in found
        and group in (None, found["group"])
        and case in (None, found["case"])
        and unit in (None, found["unit"])
    ]


def values(lines, group, case, unit):
    """Returns the values of one line, or an empty list if it was not measured."""
    found = find(lines, group, case, unit)
    return found[0]["values"] if found else []


def median(numbers):
    return statistics.median(numbers)


def ratios(above, below):
    """Returns the ratio of each round, or that of the medians if the numbers of rounds differ."""
    if not above or not below:
        return []
    if len(above) == len(below):
        return [a / b for a, b in zip(above, below)]
    return [median(above) / median(below)]

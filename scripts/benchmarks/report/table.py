"""Tables of measured lines, with a row for each case and a column for each unit."""

from .figures import figure, in_words


def table(lines, more=None):
    """Makes the table of one group. `more` has further columns: the figures of cases, by title."""
    cases, columns = {}, {}
    for line in lines:
        if "values" in line and line["values"]:
            unit, values = in_words(line["unit"], line["values"])
            cases.setdefault(line["case"], {})[unit] = figure(values)
            columns[unit] = None
    for title, figures in (more or {}).items():
        for case, values in figures.items():
            if case in cases and values:
                cases[case][title] = figure(values)
                columns[title] = None
    notes = {line["case"]: line["note"] for line in lines if line.get("unit") == first_unit(lines)
             and "note" in line}
    rows = [row("", *columns, *(["how"] if notes else []))]
    rows.append("|---" * (1 + len(columns) + bool(notes)) + "|")
    for case, figures in cases.items():
        cells = [figures.get(column, "") for column in columns]
        rows.append(row(case, *cells, *([notes.get(case, "")] if notes else [])))
    for line in lines:
        if "missing" in line:
            rows.append(row(line["case"], f"not measured: {line['missing']}"))
    return rows


def first_unit(lines):
    return next((line["unit"] for line in lines if "unit" in line), None)


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def groups(lines):
    """Groups the lines, in the order of first appearance. Groups of tuning come last."""
    found = {}
    for line in sorted(lines, key=lambda line: line["group"].endswith(", tuning")):
        found.setdefault(line["group"], []).append(line)
    return found

"""docs/benchmarks.md."""

from .line import median


def write(data, folder):
    rows = []
    for name, section in data.sections.items():
        rows += [f"\n## {name}", "| | | median | lowest | highest | unit |", "|---|---|---|---|---|---|"]
        for line in section["lines"]:
            if values := line.get("values"):
                figures = " | ".join(f"{it:,.0f}" for it in (median(values), min(values), max(values)))
                rows.append(f"| {line['group']} | {line['case']} | {figures} | {line['unit']} |")
    page = folder.parent / f"{folder.name}.md"
    page.write_text("\n".join(rows) + "\n")
    return page

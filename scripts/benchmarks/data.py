"""Measured data of all sections, in data.json. The page and the plots show this data."""

import json
from datetime import datetime, timezone

from . import machine


class Data:
    def __init__(self, folder):
        self.path = folder / "data.json"
        self.sections = json.loads(self.path.read_text()) if self.path.exists() else {}

    def put(self, name, command, section):
        """Replaces a section. `section` has its lines, and further facts by name."""
        self.sections[name] = {
            "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": machine.commit(),
            "command": command,
            "machine": machine.machine(),
            "versions": machine.versions(),
            **section,
        }
        self.write()

    def lines(self, name):
        return self.sections.get(name, {}).get("lines", [])

    def facts(self, name):
        return self.sections.get(name, {}).get("facts", {})

    def write(self):
        """Writes each line of data to its own line, so that a diff shows the changed lines."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        sections = []
        for name, section in sorted(self.sections.items()):
            rows = []
            for key, value in section.items():
                if key == "lines":
                    lines = ",\n".join(f"   {json.dumps(line)}" for line in value)
                    rows.append(f'  "lines": [\n{lines}\n  ]')
                else:
                    rows.append(f"  {json.dumps(key)}: {json.dumps(value)}")
            body = ",\n".join(rows)
            sections.append(f" {json.dumps(name)}: {{\n{body}\n }}")
        self.path.write_text("{\n" + ",\n".join(sections) + "\n}\n")

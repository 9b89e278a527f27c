"""Commands of a guide for a Debian system."""

from pathlib import Path

from .system import Failure

ROOT = Path(__file__).resolve().parents[3]
COMMANDS, OUTPUT, OTHER = "sh package", "text", None


def run(system, name):
    """Runs the blocks `sh package` of a guide word for word, in order, in a system.

    If a block `text` follows directly, it must be the output. Returns the number of blocks.
    """
    count, printed = 0, None
    for kind, text in blocks((ROOT / "docs/guides" / name).read_text()):
        if kind == COMMANDS:
            count, printed = count + 1, system.run(text)
        elif kind == OUTPUT and printed is not None:
            if text != printed:
                raise Failure(f"{name} shows:\n{text}but the commands print:\n{printed}")
            printed = None
        else:
            printed = None
    if count == 0:
        raise Failure(f"{name} has no block: {COMMANDS}")
    return count


def blocks(page):
    """Yields kind and text of each fenced block."""
    kind, text = OTHER, ""
    for line in page.splitlines():
        if not line.startswith("```"):
            text += f"{line}\n"
        elif kind is OTHER:
            kind, text = line.removeprefix("```"), ""
        else:
            yield kind, text
            kind = OTHER

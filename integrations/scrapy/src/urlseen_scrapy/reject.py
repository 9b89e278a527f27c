"""Rejects: JSON objects for items that cannot be read, in the form that the daemon writes."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from hashlib import sha1

#: Maximum size in bytes of an item that its reject contains. The reject of a larger item has the
#: item's length, SHA-1 and first bytes.
MOST = 64 << 20
#: Maximum number of bytes of a larger item that its reject has, and of a reason.
BEGINNING, REASON = 4096, 2048


def write_reject(item: bytes, reason: str) -> str:
    """Returns the reject of an item as JSON."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    reject: dict[str, str | int] = {
        "reason": _beginning(reason.encode(), REASON).decode(),
        "time": now.replace("+00:00", "Z"),
    }
    is_large = len(item) > MOST
    if is_large:
        reject["bytes"] = len(item)
        reject["sha1"] = sha1(item, usedforsecurity=False).hexdigest()
    name, shown = ("begins", _beginning(item, BEGINNING)) if is_large else ("item", item)
    try:
        reject[name] = shown.decode()
    except UnicodeDecodeError:
        reject[f"{name}_base64"] = base64.b64encode(shown).decode()
    return json.dumps(reject, ensure_ascii=False)


def _beginning(text: bytes, most: int) -> bytes:
    """Returns the first bytes of a text, at most `most`. Cuts no UTF-8 character in two."""
    end = min(most, len(text))
    for cut in range(end, max(end - 4, 0), -1):
        try:
            text[:cut].decode()
        except UnicodeDecodeError:
            continue
        return text[:cut]
    return text[:end]

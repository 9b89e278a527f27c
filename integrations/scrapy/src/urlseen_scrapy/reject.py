"""Rejects: JSON objects for items that cannot be read, in the form that the daemon writes."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from hashlib import sha1

#: Maximum size in bytes of an item that its reject contains. A larger (oversize) item is stored
#: after its reject.
MOST = 1 << 20
#: Maximum number of bytes of an oversize item that its reject shows, and of a reason.
BEGINNING, REASON = 512, 2048


def write_reject(item: bytes, reason: str) -> tuple[str, bool]:
    """Returns the reject of an item as JSON, and `True` if the item is oversize.

    The reject of an oversize item has the length, the SHA-1 and the first bytes of the item. The
    caller must keep the item itself.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    reject: dict[str, str | int] = {
        "reason": _beginning(reason.encode(), REASON).decode(),
        "time": now.replace("+00:00", "Z"),
    }
    is_oversize = len(item) > MOST
    if is_oversize:
        reject["bytes"] = len(item)
        reject["sha1"] = sha1(item, usedforsecurity=False).hexdigest()
    name, shown = ("begins", _beginning(item, BEGINNING)) if is_oversize else ("item", item)
    try:
        reject[name] = shown.decode()
    except UnicodeDecodeError:
        reject[f"{name}_base64"] = base64.b64encode(shown).decode()
    return json.dumps(reject, ensure_ascii=False), is_oversize


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

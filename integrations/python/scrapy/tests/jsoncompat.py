"""Serializer for `SCHEDULER_SERIALIZER` that writes JSON."""

from __future__ import annotations

import json
from typing import Any


def dumps(obj: dict[str, Any]) -> bytes:
    headers = {
        name.decode(): [v.decode() for v in values] for name, values in obj["headers"].items()
    }
    return json.dumps({**obj, "body": obj["body"].decode(), "headers": headers}).encode()


def loads(data: bytes) -> dict[str, Any]:
    return json.loads(data)

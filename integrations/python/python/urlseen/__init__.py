"""Has this URL been seen before?

    >>> import urlseen
    >>> urlseen.fingerprint("https://example.com/?b=2&a=1").hex()
    'a6ab45564523e37c0ded48d60b091ec021ca7a0f'

`fingerprint` and `fingerprints` compute Scrapy's own fingerprints. `Filter` is a set of keys that
takes a few bytes for each key, in memory, in a folder or in Redis. `urlseen.scrapy` has classes for
the settings of Scrapy.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, TypedDict

from urlseen._urlseen import Filter, canonicalize, explain_json, fingerprint, fingerprints, forked

__all__ = ["Filter", "canonicalize", "explain", "fingerprint", "fingerprints"]

if TYPE_CHECKING:
    from typing_extensions import Unpack

os.register_at_fork(after_in_child=forked)


class Options(TypedDict, total=False):
    """Keyword arguments of `fingerprint`, which `Filter.open` also records."""

    algorithm: str
    canonical: str
    keep_fragments: bool
    drop_tracking: str
    same: str


def explain(url: str, **options: Unpack[Options]) -> dict[str, Any]:
    """Explains the fingerprint of a URL: each step to its canonical form, and URLs that are equal.

    The options are those of `fingerprint`.

    >>> import urlseen
    >>> urlseen.explain("https://EXAMPLE.com/#top")["canonical"]
    'https://example.com/'
    """
    explained: dict[str, Any] = json.loads(explain_json(url, **options))
    return explained

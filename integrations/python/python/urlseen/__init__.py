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
from typing import Any

from urlseen._urlseen import Filter, canonicalize, explain_json, fingerprint, fingerprints, forked

__all__ = ["Filter", "canonicalize", "explain", "fingerprint", "fingerprints"]

os.register_at_fork(after_in_child=forked)


def explain(
    url: str,
    *,
    algorithm: str = "scrapy",
    canonical: str = "w3lib-2.5",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
) -> dict[str, Any]:
    """Explains the fingerprint of a URL: each step to its canonical form, and URLs that are equal.

    >>> import urlseen
    >>> urlseen.explain("https://EXAMPLE.com/#top")["canonical"]
    'https://example.com/'
    """
    explained: dict[str, Any] = json.loads(
        explain_json(
            url,
            algorithm=algorithm,
            canonical=canonical,
            keep_fragments=keep_fragments,
            drop_tracking=drop_tracking,
            same=same,
        )
    )
    return explained

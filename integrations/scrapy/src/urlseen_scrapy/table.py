"""Partition table: the daemon writes it to Redis for a crawl that is divided into partitions."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1

from urlseen_scrapy.record import lacking

#: Numbers of partitions that a crawl can have, besides 1.
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256)
#: Numbers of bytes of a digest.
DIGESTS = (16, 20, 32)


@dataclass(frozen=True)
class Table:
    """Division of a crawl into partitions.

    `suffixes` has the end of the keys of each partition. A crawl that is not divided has one
    partition, whose keys have no suffix.
    """

    suffixes: tuple[str, ...] = ("",)

    @classmethod
    def of_fields(cls, key: str, found: dict[str, str]) -> Table:
        """Makes the table of the hash at `key`, which is a table or the record of a whole crawl.

        Raises `ValueError` if the number of partitions is missing or does not fit the tags.
        """
        if "partitions" not in found:
            raise lacking(key, "partitions")
        if found["partitions"] == "1":
            return cls()
        tags = found.get("tags", "").split(",")
        if found["partitions"] != str(len(tags)) or len(tags) not in COUNTS:
            raise lacking(key, f"the tags of its {found['partitions']} partitions")
        return cls(tuple(f":{{{tag}}}" for tag in tags))

    def number(self, fingerprint: bytes) -> int:
        """Returns the number of the partition to which a fingerprint belongs."""
        digest = fingerprint
        if len(fingerprint) not in DIGESTS:
            # urlseen reads such a fingerprint as plain text.
            digest = sha1(fingerprint.hex().encode(), usedforsecurity=False).digest()
        return digest[0] * len(self.suffixes) // 256

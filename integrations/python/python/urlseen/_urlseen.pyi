from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeAlias, final

from typing_extensions import Self

_Kind: TypeAlias = Literal["two-choice", "native", "exact", "redisbloom", "valkey-bloom"]
_Canonical: TypeAlias = Literal["w3lib-2.5", "w3lib-2.4"]
_Algorithm: TypeAlias = Literal["scrapy", "scrapy-2.6", "scrapy-redis"]

def fingerprint(
    url: str,
    method: str = "GET",
    body: bytes = b"",
    *,
    algorithm: _Algorithm | str = "scrapy",
    canonical: _Canonical | str = "w3lib-2.5",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
    verbatim_url: bool = False,
) -> bytes: ...
def fingerprints(
    urls: Iterable[str],
    *,
    algorithm: _Algorithm | str = "scrapy",
    canonical: _Canonical | str = "w3lib-2.5",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
) -> list[bytes]: ...
def canonicalize(
    url: str, *, canonical: _Canonical | str = "w3lib-2.5", keep_fragments: bool = False
) -> str: ...
def explain_json(
    url: str,
    *,
    algorithm: _Algorithm | str = "scrapy",
    canonical: _Canonical | str = "w3lib-2.5",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
) -> str: ...
def forked() -> None: ...
def run(arguments: list[str]) -> int: ...

class Away(Exception):
    sent: bool

class Refused(Exception): ...
class Full(Exception): ...

@final
class Address:
    def __new__(
        cls,
        url: str,
        connect_s: float,
        response_s: float,
        *,
        client_name: str | None = None,
        ca: str | None = None,
        cert: str | None = None,
        key: str | None = None,
    ) -> Self: ...

class Asker:
    def __new__(cls, address: Address) -> Self: ...
    def ask(self, words: list[bytes]) -> Any: ...
    def close(self) -> None: ...

@final
class Held:
    @property
    def item(self) -> bytes: ...
    @property
    def partition(self) -> int: ...

class Consumer:
    def __new__(
        cls,
        address: Address,
        source: str,
        name: str | None,
        partitions: list[int],
        held_max: int,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def sources(self) -> list[str]: ...
    def partition_of(self, fingerprint: str) -> int: ...
    def changes(self) -> int: ...
    def read_records(self) -> list[dict[str, str] | None]: ...
    def read_missing(self) -> None: ...
    def ask(self, commands: list[tuple[int | None, list[bytes]]]) -> list[object]: ...
    def is_away(self) -> bool: ...
    def rests(self, partition: int) -> str | None: ...
    def pop(self) -> Any: ...
    def finish(self, held: Held, links: list[bytes]) -> bool: ...
    def reject(self, held: Held, reason: str) -> bool: ...
    def count(self) -> int: ...
    def source_len(self) -> int: ...
    def leave(self) -> int: ...
    def close(self) -> None: ...

@final
class Filter:
    def __new__(
        cls,
        capacity: int | None = None,
        error_rate: float | None = None,
        *,
        kind: _Kind | str = "two-choice",
        grow_to: int | None = None,
        seed: int | None = None,
    ) -> Self: ...
    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        capacity: int | None = None,
        error_rate: float | None = None,
        *,
        kind: _Kind | str | None = None,
        grow_to: int | None = None,
        seed: int | None = None,
        algorithm: str = "scrapy",
        canonical: str = "w3lib-2.5",
        keep_fragments: bool = False,
        drop_tracking: str = "none",
        same: str = "[]",
    ) -> Self: ...
    @classmethod
    def open_redis(
        cls,
        url: str,
        key: str,
        capacity: int | None = None,
        error_rate: float | None = None,
        *,
        kind: str = "native",
    ) -> Self: ...
    def add(self, key: str | bytes) -> bool: ...
    def add_many(self, keys: Iterable[str | bytes]) -> list[bool]: ...
    def contains_many(self, keys: Iterable[str | bytes]) -> list[bool]: ...
    def __contains__(self, key: str | bytes) -> bool: ...
    def __len__(self) -> int: ...
    def forget(self, key: str | bytes) -> bool: ...
    def forget_many(self, keys: Iterable[str | bytes]) -> list[bool]: ...
    @property
    def capacity(self) -> int: ...
    @property
    def error_rate(self) -> float: ...
    @property
    def fill(self) -> float: ...
    @property
    def memory(self) -> int: ...
    def save(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

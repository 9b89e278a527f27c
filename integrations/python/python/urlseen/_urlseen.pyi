from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Literal, TypeAlias, final

from typing_extensions import Self

_Kind: TypeAlias = Literal["two-choice", "native", "exact", "redisbloom"]
_Algorithm: TypeAlias = Literal["scrapy", "scrapy-2.6", "scrapy-redis"]

def fingerprint(
    url: str,
    method: str = "GET",
    body: bytes = b"",
    *,
    algorithm: _Algorithm | str = "scrapy",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
    verbatim_url: bool = False,
) -> bytes: ...
def fingerprints(
    urls: Iterable[str],
    *,
    algorithm: _Algorithm | str = "scrapy",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
) -> list[bytes]: ...
def canonicalize(url: str, *, keep_fragments: bool = False) -> str: ...
def explain_json(
    url: str,
    *,
    algorithm: _Algorithm | str = "scrapy",
    keep_fragments: bool = False,
    drop_tracking: str = "none",
    same: str = "[]",
) -> str: ...
def forked() -> None: ...
def run(arguments: list[str]) -> int: ...

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

"""Client for scrapy-redis that takes the addresses of Sentinels and of a Redis Cluster.

Each connection first asks these nodes which server to use. After an error, the next connection asks
again. No connection sends a command twice.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import redis
from redis import exceptions
from redis.connection import Connection, ConnectionPool, SSLConnection, parse_url
from redis.crc import key_slot
from scrapy.utils.misc import load_object
from urlseen._urlseen import Address, Away, Refused

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

#: Maximum number of seconds that one node may take for its answer.
ANSWER_S = 1.0
#: Maximum number of seconds for a connection or an answer, if the project sets none.
PATIENCE_S = 30.0
#: Number of seconds between two questions to the Sentinels, and after a question without answer.
LOOK_S, LATER_LOOK_S = 1.0, 10.0
#: Maximum number of `MOVED` answers that one command follows. While a slot changes its node, two
#: nodes may name each other.
HOPS = 4

_URL = re.compile(
    r"(?:redis|valkey)(?P<s>s?)\+(?P<kind>sentinel|cluster)://"
    r"(?P<login>[^/?#]*@)?(?P<hosts>[^/?#@]+)(?P<path>/[^?#]*)?(?P<options>\?[^#]*)?",
    re.IGNORECASE,
)
_HOST = re.compile(r"(?:\[[^\]]+\]|[^\[\]:]+)(?::(?P<port>[0-9]{1,5}))?")
_UNREADABLE = (
    "REDIS_URL cannot be read. Its forms are redis://[[user]:password@]host[:port][/database],"
    " redis+sentinel://[login@]host[:port],…/name[/database],"
    " redis+cluster://[login@]host[:port],…, the same with rediss for TLS, and unix:///path. Write"
    " special characters of a password in the form %40"
)


class _FoundConnection(Connection):
    """Connection to the server that the nodes name. It ends when they name another one."""

    def __init__(self, *, nodes: Address, **options: Any) -> None:
        self._nodes = nodes
        self._next_look = 0.0
        #: Node to which the next connection goes, because the last one has named it.
        self._named: tuple[str, int] | None = None
        super().__init__(**options)

    def connect(self) -> None:
        if self._sock is not None:
            return
        self.host, self.port = self._named or self._find()
        self._named = None
        self._next_look = time.monotonic() + LOOK_S
        super().connect()

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if self._named is not None or self._is_over():
            self.disconnect()
        self.connect()
        super().send_packed_command(command, check_health)

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)
        except exceptions.MovedError as moved:
            # A node that does not know its own address leaves out the host, which then is the same.
            # A pipeline still reads the answers to its other commands.
            self._named = (moved.host or self.host, moved.port)
            raise

    def _find(self) -> tuple[str, int]:
        try:
            return self._nodes.find()
        except Refused as refused:
            raise exceptions.AuthenticationError(str(refused)) from None
        except Away as away:
            raise exceptions.ConnectionError(str(away)) from None

    def _is_over(self) -> bool:
        """Returns `True` if the Sentinels name another primary. Asks them once in a while."""
        is_idle = self._sock is None or self._nodes.is_cluster
        if is_idle or time.monotonic() < self._next_look:
            return False
        try:
            found = self._nodes.find()
        except (Away, Refused):
            # The primary may answer nevertheless.
            self._next_look = time.monotonic() + LATER_LOOK_S
            return False
        self._next_look = time.monotonic() + LOOK_S
        return found != (self.host, self.port)


class _FoundTlsConnection(_FoundConnection, SSLConnection):
    pass


class Redis(redis.Redis):
    """Client for scrapy-redis that also takes the addresses of Sentinels and of a Redis Cluster:

        REDIS_URL = "redis+sentinel://10.0.0.1,10.0.0.2,10.0.0.3/mymaster"
        REDIS_PARAMS = {"redis_cls": "urlseen_scrapy.Redis"}

    It takes all forms of `redis.url` in urlseen's config, and those of redis-py.
    """

    @classmethod
    def from_url(cls, url: str, **options: Any) -> redis.Redis:
        """Makes a client. It does not connect yet. Raises `ValueError` if `url` is invalid."""
        parts = _URL.fullmatch(url.strip())
        if parts is None:
            _parse_url(url)
            return super().from_url(url, **options)
        # The host of this URL is not used.
        found = _parse_url(
            f"redis{parts['s'].lower()}://{parts['login'] or ''}h{parts['options'] or ''}"
        )
        is_tls = found.pop("connection_class", Connection) is SSLConnection
        del found["host"]
        hosts = [_HOST.fullmatch(host) for host in parts["hosts"].split(",")]
        if not all(host and int(host["port"] or 0) <= 65535 for host in hosts):
            raise ValueError(_UNREADABLE)
        name, _, db = (parts["path"] or "").strip("/").partition("/")
        kind = parts["kind"].lower()
        if kind == "cluster":
            name, db = "", name + db
        if db and not re.fullmatch("0" if kind == "cluster" else "[0-9]+", db):
            raise ValueError(
                "REDIS_URL: the database is not a number from 0, or not 0 in a Redis Cluster. Write"
                " it at the end, as in redis+sentinel://10.0.0.1,10.0.0.2/mymaster/3, or leave it"
                " out"
            )
        if kind == "sentinel" and not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ValueError(
                "REDIS_URL: the name by which the Sentinels know the primary is missing or has a"
                " wrong character. Write it like redis+sentinel://10.0.0.1,10.0.0.2/mymaster"
            )
        options = {**options, **found, **({"db": int(db)} if db else {})}
        connection = _FoundTlsConnection if is_tls else _FoundConnection
        place = f"+{kind}", parts["hosts"], f"{name}/{options.get('db') or 0}".lstrip("/")
        nodes = _address(connection, options, *place)
        return cls(connection_pool=ConnectionPool(connection, nodes=nodes, **options))

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Sends a command. In a cluster, sends it again to the node that an answer names.

        A node that names another one has not executed the command.
        """
        for _ in range(HOPS if is_cluster(self) else 0):
            try:
                return super().execute_command(*args, **options)
            except exceptions.MovedError:
                continue
        return super().execute_command(*args, **options)


def address_of(server: redis.Redis) -> Address:
    """Returns the address of the server of a client, with login and time limits.

    Raises `ValueError` if the options of the client turn off the check of certificates.
    """
    pool = server.connection_pool
    return single_address(pool.connection_class, pool.connection_kwargs)


def single_address(kind: type, options: dict[str, Any]) -> Address:
    """Returns the address of a connection of redis-py with this class and these options."""
    nodes: Address | None = options.get("nodes")
    if nodes is not None:
        return nodes
    host, port = options.get("host") or "localhost", options.get("port") or 6379
    place = f"[{host}]" if ":" in host else host
    return _address(kind, options, "", f"{place}:{port}", str(options.get("db") or 0))


def _address(kind: type, options: dict[str, Any], nodes: str, hosts: str, path: str) -> Address:
    is_tls = issubclass(kind, SSLConnection)
    if is_tls and (
        options.get("ssl_cert_reqs") in ("none", "optional", 0, 1)
        or not options.get("ssl_check_hostname", True)
    ):
        raise ValueError(
            "REDIS_PARAMS: ssl_cert_reqs or ssl_check_hostname turns the check of the server's"
            " certificate off, but urlseen always checks it. Name its authority in ssl_ca_certs"
        )
    user, password = (quote(options.get(name) or "", safe="") for name in ("username", "password"))
    login = f"{user}:{password}@" if user or password else ""
    url = f"redis{'s' if is_tls else ''}{nodes}://{login}{hosts}/{path}"
    if "path" in options:
        words = (("db", path), ("user", user), ("pass", password))
        query = "&".join(f"{name}={word}" for name, word in words if word)
        url = f"unix://{quote(options['path'])}?{query}"
    connect_s = options.get("socket_connect_timeout") or PATIENCE_S
    return Address(
        url,
        min(connect_s, ANSWER_S) if nodes else connect_s,
        options.get("socket_timeout") or PATIENCE_S,
        client_name=options.get("client_name"),
        ca=options.get("ssl_ca_certs"),
        cert=options.get("ssl_certfile"),
        key=options.get("ssl_keyfile"),
    )


def check_client(settings: BaseSettings) -> None:
    """Raises `ValueError` if `REDIS_URL` needs the client of this package, and another is set."""
    chosen = settings.getdict("REDIS_PARAMS").get("redis_cls", redis.Redis)
    if _URL.match(settings.get("REDIS_URL") or "") and load_object(chosen) is not Redis:
        raise ValueError(
            "REDIS_URL has Sentinels or nodes of a Redis Cluster, which scrapy-redis cannot use by"
            ' itself. Set REDIS_PARAMS = {"redis_cls": "urlseen_scrapy.Redis"}'
        )


def check_slots(server: redis.Redis, keys: dict[str, str]) -> None:
    """Raises `ValueError` if `server` is a cluster, and the keys are in different slots there.

    `keys` has the setting of each key.
    """
    if is_cluster(server) and len({key_slot(key.encode()) for key in keys.values()}) > 1:
        listed = ", ".join(f'{name} = "{key}"' for name, key in keys.items())
        raise ValueError(
            "REDIS_URL is a Redis Cluster, and the keys of the crawl are in different slots there:"
            f" {listed}. Give all of them the same text in braces, here and in urlseen's config, as"
            ' in "{demo}:discovered" and "{demo}:unseen"'
        )


def is_cluster(server: redis.Redis) -> bool:
    """Returns `True` if the client `server` is for a Redis Cluster."""
    nodes: Address | None = server.connection_pool.connection_kwargs.get("nodes")
    return nodes is not None and nodes.is_cluster


def _parse_url(url: str) -> dict[str, Any]:
    try:
        return dict(parse_url(url))
    except ValueError:
        # The text of this error may contain a part of the password.
        raise ValueError(_UNREADABLE) from None

"""Client for the addresses that name Sentinels or a Redis Cluster, in the forms of `redis.url`.

Each connection first asks these nodes which server to use. After an error, the next connection asks
again. No connection sends a command twice.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import redis
from redis import exceptions
from redis.connection import Connection, ConnectionPool, SSLConnection, parse_url
from redis.crc import key_slot
from scrapy.utils.misc import load_object

from urlseen_scrapy.wire import REFUSING, without_retries

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings
    from typing_extensions import Self

#: Maximum number of seconds that one node may take for its answer.
ANSWER_S = 1.0
#: Number of seconds between two questions to the Sentinels, and after a question without answer.
LOOK_S, LATER_LOOK_S = 1.0, 10.0
#: Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
#: nodes may name each other.
HOPS = 4
#: Ports of a Sentinel and of a node of a cluster, if the URL has none.
PORTS = {"sentinel": 26379, "cluster": 6379}

_URL = re.compile(
    r"(?:redis|valkey)(?P<s>s?)\+(?P<kind>sentinel|cluster)://"
    r"(?P<login>[^/?#]*@)?(?P<hosts>[^/?#@]+)(?P<path>/[^?#]*)?(?P<options>\?[^#]*)?",
    re.IGNORECASE,
)
_HOST = re.compile(r"(?:\[(?P<ip>[^\]]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]{1,5}))?")
_UNREADABLE = (
    "REDIS_URL cannot be read. Its forms are redis://[[user]:password@]host[:port][/database],"
    " redis+sentinel://[login@]host[:port],…/name[/database],"
    " redis+cluster://[login@]host[:port],…, the same with rediss for TLS, and unix:///path. Write"
    " special characters of a password in the form %40"
)


class Node(NamedTuple):
    """Host and port of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Nodes:
    """Nodes of a URL. `options` has the login and the other options of a connection to them."""

    def __init__(self, nodes: list[Node], connection_class: type, options: dict[str, Any]) -> None:
        self._in_url = self._nodes = nodes
        self._class = connection_class
        self._options = options

    def for_key(self, _key: str) -> Self:
        """Returns the nodes for commands on a key. Only in a cluster, they depend on the key."""
        return self

    def _first_answer(self, ask: Callable[[Node], Node], failure: str) -> Node:
        """Asks the nodes in turn. The next search begins with the node that gave the answer."""
        causes = []
        for node in self._nodes:
            try:
                found = ask(node)
            except (*REFUSING, exceptions.NoPermissionError):
                raise
            except (exceptions.RedisError, OSError) as error:
                causes.append(f"{node}: {error}")
                continue
            self._begin_at(node)
            return found
        raise exceptions.ConnectionError(f"{failure}: {'; '.join(causes)}")

    def _begin_at(self, node: Node) -> None:
        # Other threads may read the list, so it does not change.
        self._nodes = [node, *(each for each in self._in_url if each != node)]

    def _client(self, node: Node, without: tuple[str, ...] = ()) -> redis.Redis:
        options = {name: value for name, value in self._options.items() if name not in without}
        options |= {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
        options |= {"host": node.host, "port": node.port, "decode_responses": True}
        options |= without_retries()
        return redis.Redis(connection_pool=ConnectionPool(self._class, **options))


class Sentinels(_Nodes):
    """Sentinels that know a primary by the name `name`."""

    def __init__(self, name: str, *nodes: Any) -> None:
        super().__init__(*nodes)
        self.name = name
        # A Sentinel gets the login of the primary only if it requires one.
        no_login = ("db", "username", "password")
        self._clients = {node: self._client(node, no_login) for node in self._nodes}

    def find(self) -> Node:
        """Asks the Sentinels for the primary. Raises `ConnectionError` if none names it."""
        return self._first_answer(self._ask, f"no Sentinel names the primary {self.name}")

    def _ask(self, node: Node) -> Node:
        words = ("SENTINEL GET-MASTER-ADDR-BY-NAME", self.name)
        try:
            found = self._clients[node].execute_command(*words)
        except exceptions.AuthenticationError:
            if not self._options.get("password"):
                raise
            self._clients[node] = self._client(node, ("db",))
            found = self._clients[node].execute_command(*words)
        if found is None:
            raise exceptions.ResponseError(
                "it does not know this name; SENTINEL MASTERS shows the names that it knows"
            )
        return Node(*found)


class Cluster(_Nodes):
    """Some nodes of a Redis Cluster. Without a key, each of its nodes will do."""

    key: str | None = None

    def __init__(self, *nodes: Any) -> None:
        super().__init__(*nodes)
        self._of_keys: dict[str, Cluster] = {}

    def for_key(self, key: str) -> Cluster:
        """Returns the cluster for connections to the node that serves `key`.

        All connections for one key share the knowledge which node this is.
        """
        if key not in self._of_keys:
            self._of_keys[key] = cluster = Cluster(self._in_url, self._class, self._options)
            cluster.key = key
        return self._of_keys[key]

    def find(self) -> Node:
        """Finds the node that serves the key. Raises `ConnectionError` if no node answers."""
        return self._first_answer(self._follow, "no node of the Redis Cluster serves the crawl")

    def moved(self, node: Node) -> None:
        """Notes that a node has named this node, so that the next search begins with it."""
        self._begin_at(node)

    def _follow(self, node: Node) -> Node:
        words = ("PING",) if self.key is None else ("TYPE", self.key)
        for _ in range(HOPS):
            client = self._client(node)
            try:
                client.execute_command(*words)
                return node
            except exceptions.MovedError as moved:
                node = named(moved, node)
            except exceptions.AskError:
                # The node still serves the slot, which is being moved to another one.
                return node
            finally:
                client.connection_pool.disconnect()
        raise exceptions.ConnectionError("the nodes do not agree about the slot of the crawl")


class _SentinelConnection(Connection):
    """Connection to the primary. It ends when the Sentinels name another one."""

    def __init__(self, *, nodes: Sentinels, **options: Any) -> None:
        self._nodes = nodes
        self._next_look = 0.0
        super().__init__(**options)

    def connect(self) -> None:
        if self._sock is not None:
            return
        found = self._nodes.find()
        self._next_look = time.monotonic() + LOOK_S
        self.host, self.port = found
        super().connect()
        try:
            self.send_command("ROLE")
            role = self.read_response(disable_decoding=True)
            if role[0] != b"master":
                raise exceptions.ConnectionError(
                    f"the Sentinels name {found} as the primary {self._nodes.name}, but this server"
                    " is not a primary. Wait for the end of the failover"
                )
        except exceptions.RedisError:
            self.disconnect()
            raise

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        self.connect()
        self._check_primary()
        super().send_packed_command(command, check_health)

    def _check_primary(self) -> None:
        if time.monotonic() < self._next_look:
            return
        pause, old = LOOK_S, Node(self.host, self.port)
        try:
            new = self._nodes.find()
        except exceptions.RedisError:
            # The primary may answer nevertheless.
            pause, new = LATER_LOOK_S, old
        self._next_look = time.monotonic() + pause
        if new != old:
            self.disconnect()
            raise exceptions.ConnectionError(
                f"the Sentinels have switched {self._nodes.name} from {old} to {new}"
            )


class _SentinelTlsConnection(_SentinelConnection, SSLConnection):
    pass


class _ClusterConnection(Connection):
    """Connection to a node of a cluster. After `MOVED`, the next command opens a new connection."""

    def __init__(self, *, nodes: Cluster, **options: Any) -> None:
        self._nodes = nodes
        self._has_moved = False
        super().__init__(**options)

    def connect(self) -> None:
        if self._sock is not None:
            return
        self._has_moved = False
        self.host, self.port = self._nodes.find()
        super().connect()

    def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        if self._has_moved:
            self.disconnect()
        self.connect()
        super().send_packed_command(command, check_health)

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)
        except exceptions.MovedError as moved:
            self._nodes.moved(named(moved, Node(self.host, self.port)))
            # A pipeline still reads the answers to its other commands.
            self._has_moved = True
            raise


class _ClusterTlsConnection(_ClusterConnection, SSLConnection):
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
        name, _, db = (parts["path"] or "").strip("/").partition("/")
        is_cluster = parts["kind"].lower() == "cluster"
        if is_cluster:
            name, db = "", name + db
        if db and not re.fullmatch("0" if is_cluster else "[0-9]+", db):
            raise ValueError(
                "REDIS_URL: the database is not a number from 0, or not 0 in a Redis Cluster. Write"
                " it at the end, as in redis+sentinel://10.0.0.1,10.0.0.2/mymaster/3, or leave it"
                " out"
            )
        if not is_cluster and not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ValueError(
                "REDIS_URL: the name by which the Sentinels know the primary is missing or has a"
                " wrong character. Write it like redis+sentinel://10.0.0.1,10.0.0.2/mymaster"
            )
        options = {**options, **found, **({"db": int(db)} if db else {})}
        nodes = _hosts(parts["hosts"], PORTS[parts["kind"].lower()])
        single = SSLConnection if is_tls else Connection
        if is_cluster:
            lookup: _Nodes = Cluster(nodes, single, options)
            kind: type = _ClusterTlsConnection if is_tls else _ClusterConnection
        else:
            lookup = Sentinels(name, nodes, single, options)
            kind = _SentinelTlsConnection if is_tls else _SentinelConnection
        return cls(connection_pool=ConnectionPool(kind, nodes=lookup, **options))

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


def named(moved: exceptions.AskError, by: Node) -> Node:
    """Returns the node that an answer of the node `by` names.

    A node that does not know its own address leaves out the host, which then is the same.
    """
    return Node(moved.host or by.host, moved.port)


def is_cluster(server: redis.Redis) -> bool:
    """Returns `True` if the client `server` is for a Redis Cluster."""
    return isinstance(server.connection_pool.connection_kwargs.get("nodes"), Cluster)


def _hosts(hosts: str, port: int) -> list[Node]:
    found = [_HOST.fullmatch(host) for host in hosts.split(",")]
    nodes = [Node(each["ip"] or each["name"], int(each["port"] or port)) for each in found if each]
    if len(nodes) != len(found) or any(node.port > 65535 for node in nodes):
        raise ValueError(_UNREADABLE)
    return nodes


def _parse_url(url: str) -> dict[str, Any]:
    try:
        return dict(parse_url(url))
    except ValueError:
        # The text of this error may contain a part of the password.
        raise ValueError(_UNREADABLE) from None

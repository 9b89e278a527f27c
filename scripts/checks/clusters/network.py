"""Networks in which servers and urlseen run."""

import os
import socket
import subprocess
import sys

from .progress import until

#: Set in the environment of a script that runs in namespaces of its own.
MARK = "IN_NAMESPACES"
#: Bridges. Hosts at the second one cannot reach hosts at the first one.
MAIN, ASIDE = "main", "aside"


def in_namespaces():
    """Returns true if this script runs in namespaces of its own."""
    return MARK in os.environ


def enter_namespaces():
    """Starts this script again, in new namespaces for its network, processes and mounts.

    All its processes end with the script. Returns only if the script runs there already, or if the
    system does not permit it. In that case it returns the reason.
    """
    if in_namespaces():
        return None
    unshare = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        unshare += ["--user", "--map-root-user"]
    probe = ["unshare", "--net", "ip", "link", "add", "name", MAIN, "type", "bridge"]
    try:
        found = subprocess.run([*unshare, *probe], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    if found.returncode != 0:
        return found.stderr.strip()
    command = [*unshare, sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, MARK: "yes"})


def ip(*words, at=()):
    subprocess.run([*at, "ip", *map(str, words)], check=True)


class Host:
    """Machine of the test: its address, and the start of commands that run there."""

    def __init__(self, address, prefix=(), link=None):
        self.address, self.prefix, self.link = address, list(prefix), link

    def start(self, command, **options):
        return subprocess.Popen([*self.prefix, *map(str, command)], **options)

    def port(self, usual):
        """Returns a port at which a server can listen."""
        if self.link:
            return usual
        with socket.socket() as listener:
            listener.bind((self.address, 0))
            return listener.getsockname()[1]


class Loopback:
    """Loopback interface. All hosts have one address, and none of them can be cut off."""

    def host(self):
        return Host("127.0.0.1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class Namespaces:
    """Network with a namespace for each host, as of machines at a switch."""

    def __init__(self):
        self.holders = []

    def __enter__(self):
        ip("link", "set", "lo", "up")
        for bridge in (MAIN, ASIDE):
            ip("link", "add", "name", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
        ip("address", "add", "10.77.255.254/16", "dev", MAIN)
        return self

    def host(self):
        """Makes a host with an address of its own."""
        number = len(self.holders)
        holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.holders.append(holder)
        namespace = f"/proc/{holder.pid}/ns/net"
        own = os.readlink("/proc/self/ns/net")
        until("namespace", lambda: os.readlink(namespace) != own)
        link, at = f"host{number}", ["nsenter", f"--net={namespace}"]
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", holder.pid)
        ip("link", "set", link, "master", MAIN, "up")
        address = f"10.77.{number // 250}.{number % 250 + 1}"
        ip("address", "add", f"{address}/16", "dev", "eth0", at=at)
        for device in ("lo", "eth0"):
            ip("link", "set", device, "up", at=at)
        return Host(address, at, link)

    def cut(self, hosts):
        """Cuts hosts off from all others. They can still reach each other."""
        for host in hosts:
            ip("link", "set", host.link, "master", ASIDE)

    def heal(self, hosts):
        """Connects hosts with all others again."""
        for host in hosts:
            ip("link", "set", host.link, "master", MAIN)

    def __exit__(self, *_):
        for holder in self.holders:
            holder.kill()
            holder.wait()

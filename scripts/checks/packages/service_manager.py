"""Stand-in for systemd, for a system in which systemd cannot be the first process.

It runs the commands of a unit as the unit's user, with the unit's environment, folders and limits.
They have a read-only file system, no capabilities, and a real socket for messages (NOTIFY_SOCKET).
The unit's filter of system calls is not applied. The command `systemctl` of the system sends
requests.
"""

import fnmatch
import os
import resource
import socket
import subprocess
import threading
import time
from pathlib import Path

from .system import Failure

UNITS = "/lib/systemd/system"
START_SECONDS = 30
# Command of the system that sends its arguments to this service manager, and prints the answer.
SYSTEMCTL = """#!/bin/sh
printf '%s\\n' "$*" >/run/service-manager/request
{ read -r status; cat; } </run/service-manager/reply
exit "$status"
"""


class Unit:
    """Settings of an instance of a template unit. All values of a repeated setting count."""

    def __init__(self, system, name):
        template, instance = name.removesuffix(".service").split("@")
        self.name, self.system = f"{template}@{instance}.service", system
        self.settings = {}
        for line in system.path(f"{UNITS}/{template}@.service").read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                value = value.replace("%i", instance).replace("%S", "/var/lib")
                self.settings.setdefault(key, []).append(value)

    def one(self, key):
        return self.settings[key][0]

    def user(self):
        lines = self.system.path("/etc/passwd").read_text().splitlines()
        users = {line.split(":")[0]: line.split(":") for line in lines}
        return users[self.one("User")]

    def environment(self):
        path = self.one("EnvironmentFile").removeprefix("-")
        file = self.system.path(path)
        lines = file.read_text().splitlines() if file.exists() else []
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def make_state_directory(self):
        """Makes the state directory, only for the user. Returns its path in the system, or the
        path of a folder for temporary files if the unit has no state directory.
        """
        if "StateDirectory" not in self.settings:
            return "/tmp"
        path = "/var/lib/" + self.one("StateDirectory")
        folder = self.system.path(path)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(int(self.one("StateDirectoryMode"), 8))
        os.chown(folder, int(self.user()[2]), int(self.user()[3]))
        return path

    def command(self, line):
        """Returns the command that runs a line of the unit in the system."""
        root, state = self.system.folder, self.make_state_directory()
        work = self.settings.get("WorkingDirectory", ["/"])[0]
        mounts = (
            f"mount --bind {root}{state} {root}{state}; mount -t tmpfs tmpfs {root}/tmp; "
            f"mount -o remount,bind,ro {root}; umask {self.one('UMask')}; "
            f'cd {root}{work}; exec "$@"'
        )
        inside = f'cd {work}; exec "$@"'
        user = self.one("User")
        own = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--no-new-privs"]
        own += ["--bounding-set=-all", "--inh-caps=-all", "--pdeathsig=KILL"]
        # A machine without the right to raise a hard limit keeps its own.
        soft, hard = self.settings.get("LimitNOFILE", ["1024:524288"])[0].split(":")
        hard = min(int(hard), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        limit = ["prlimit", f"--nofile={soft}:{hard}"]
        place = ["unshare", "--mount", "sh", "-ec", mounts, "sh", "chroot", root]
        return [*place, "sh", "-ec", inside, "sh", *limit, *own, *line.split()]


class Service:
    """Unit that runs, with the messages that its process has sent."""

    def __init__(self, unit, log):
        self.unit, self.status, self.ready, self.signs_of_life = unit, "", False, 0
        path = f"/run/{unit.name}.notify"
        place = unit.system.path(path)
        place.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(place))
        place.chmod(0o666)
        seconds = int(unit.one("WatchdogSec"))
        env = unit.environment() | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "NOTIFY_SOCKET": path}
        env["WATCHDOG_USEC"] = str(seconds * 1_000_000)
        for line in unit.settings.get("ExecStartPre", []):
            command = unit.command(line.removeprefix("-"))
            run = subprocess.run(command, env=env, stdout=log, stderr=log, check=False)
            if run.returncode != 0 and not line.startswith("-"):
                raise Failure(f"ExecStartPre of {unit.name} has status {run.returncode}")
        command = unit.command(unit.one("ExecStart"))
        self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        threading.Thread(target=self.listen, daemon=True).start()
        end = time.monotonic() + START_SECONDS
        while not self.ready:
            if self.process.poll() is not None:
                raise Failure(f"{unit.name} ended with status {self.process.returncode}")
            if time.monotonic() > end:
                self.stop()
                raise Failure(f"{unit.name} is not ready after {START_SECONDS} s")
            time.sleep(0.01)

    def values(self):
        """Returns properties of the service, with the names that systemd gives them."""
        signs = str(self.signs_of_life or "")
        pid = self.process.pid if self.process.poll() is None else 0
        return {"MainPID": pid, "StatusText": self.status, "WatchdogTimestamp": signs}

    def listen(self):
        while message := self.socket.recv(4096):
            for line in message.decode().splitlines():
                name, value = line.split("=", 1)
                if name == "READY":
                    self.ready = True
                elif name == "WATCHDOG":
                    self.signs_of_life += 1
                elif name == "STATUS":
                    self.status = value

    def stop(self):
        self.process.terminate()
        status = self.process.wait()
        if status != 0:
            raise Failure(f"{self.unit.name} ended with status {status} after SIGTERM")


class ServiceManager:
    """Answers the requests of the system's `systemctl`, one after the other."""

    def __init__(self, system):
        self.system, self.services, self.enabled = system, {}, set()
        self.log = Path(system.path("/var/log/services"))
        system.path("/run/systemd/system").mkdir(parents=True)
        pipes = system.path("/run/service-manager")
        pipes.mkdir()
        self.request, self.reply = pipes / "request", pipes / "reply"
        os.mkfifo(self.request)
        os.mkfifo(self.reply)
        command = pipes / "systemctl"
        command.write_text(SYSTEMCTL)
        command.chmod(0o755)
        own = system.path("/usr/bin/systemctl")
        subprocess.run(["mount", "--bind", command, own], check=True)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            words = self.request.read_text().split()
            try:
                status, text = (
                    0,
                    self.do([word for word in words if not word.startswith("-")], words),
                )
            except (Failure, KeyError) as failure:
                status, text = 1, f"{failure}\n{self.log.read_text()}"
            self.reply.write_text(f"{status}\n{text}")

    def do(self, words, options):
        verb, names = words[0], words[1:]
        if verb == "enable":
            self.enabled.update(names)
            verb = "start" if "--now" in options else verb
        if verb in ("enable", "daemon-reload", "disable", "preset", "unmask", "purge"):
            return ""
        if verb in ("status", "show"):
            service = self.services[self.full(names[0])]
            values = service.values()
            asked = [it.removeprefix("--property=") for it in options if "=" in it] or [
                "StatusText"
            ]
            return "".join(f"{values[name]}\n" for name in asked)
        running = [it for name in names for it in fnmatch.filter(self.services, self.full(name))]
        if verb in ("stop", "restart", "try-restart"):
            for name in running:
                self.services.pop(name).stop()
        if verb in ("start", "restart"):
            running = [self.full(name) for name in names]
        if verb in ("start", "restart", "try-restart"):
            with self.log.open("a") as log:
                for name in running:
                    self.services[name] = Service(Unit(self.system, name), log)
        elif verb != "stop":
            raise Failure(f"the stand-in for systemctl does not know: {' '.join(options)}")
        return ""

    @staticmethod
    def full(name):
        return name if name.endswith(".service") else f"{name}.service"

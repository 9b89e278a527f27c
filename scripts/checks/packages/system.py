"""Small Debian system in a folder, in which a test installs packages and runs programs."""

import contextlib
import subprocess
import time
from pathlib import Path

PACKAGES = "systemd,redis-server,ca-certificates,curl"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "SYSTEMD_PAGER": "",
}
# Folder of the system in which commands run.
FOLDER = "/srv"
BOOT_SECONDS = 60
DIES_WITH_US = ("setpriv", "--pdeathsig=KILL")
# All processes of the namespaces end with the first one.
APART = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--")


class Failure(Exception):
    """Result of the test that is wrong."""


def check(right, said):
    """Fails with a message unless the result is right."""
    if not right:
        raise Failure(said)


def suite():
    """Returns the name of this machine's version of Debian. A program needs its libraries."""
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=")[1]
    raise Failure("/etc/os-release has no VERSION_CODENAME: the test needs Debian")


def bootstrap(folder):
    """Installs a small Debian into a folder."""
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
    command += ["--dpkgopt=force-unsafe-io", "--aptopt=Acquire::Languages none"]
    subprocess.run([*command, suite(), folder], check=True, stdout=subprocess.DEVNULL)


def run_apart(arguments):
    """Runs a program in namespaces of its own, and returns its exit status.

    The program sees only the processes that it starts, and a network without other machines. Its
    mounts and processes end with it.
    """
    return subprocess.run([*DIES_WITH_US, *APART, *arguments], check=False).returncode


def children(pid):
    """Returns the ids of the processes that a process has started."""
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


class System:
    """Debian system in a folder. `command` runs a program in it."""

    command = ()

    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, path):
        """Returns the path of a file of the system, as seen from outside."""
        return self.folder / path.lstrip("/")

    def run(self, script):
        """Runs commands by bash as root, in the folder /root. Returns their output."""
        command = [*self.command, "bash", "-euo", "pipefail", "-c", f"cd {FOLDER}\n{script}"]
        run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise Failure(f"status {run.returncode} of: {script}\n{run.stdout}{run.stderr}")
        return run.stdout


class ChangedRoot(System):
    """System whose programs run by chroot, for a program that `run_apart` runs."""

    def __init__(self, folder):
        super().__init__(folder)
        self.command = ("chroot", folder)
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        for kind, place in (("proc", "proc"), ("tmpfs", "run"), ("tmpfs", "tmp")):
            subprocess.run(["mount", "-t", kind, kind, self.folder / place], check=True)
        for place in ("dev", "sys"):
            subprocess.run(["mount", "--rbind", f"/{place}", self.folder / place], check=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        redis = ["redis-server", "--save", "", "--logfile", "/run/redis.log"]
        subprocess.Popen([*self.command, *redis], stdout=subprocess.DEVNULL)


class Booted(System):
    """System whose first process is systemd, in namespaces that systemd-nspawn makes."""

    def __init__(self, folder):
        super().__init__(folder)
        own = ["--quiet", "--register=no", "--keep-unit", "--private-network", "--directory"]
        self.log = self.path(f"{FOLDER}/console")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*DIES_WITH_US, *APART, "systemd-nspawn", *own, folder, "--boot"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def boot(self):
        """Waits until systemd has started the services. Returns false if it cannot run here."""
        end = time.monotonic() + BOOT_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            for leader in (it for nspawn in children(self.process.pid) for it in children(nspawn)):
                self.command = ("nsenter", "--all", "--target", leader)
                with contextlib.suppress(Failure):
                    # Some units of a small system fail, so the state is running or degraded.
                    self.run("systemctl is-system-running --wait | grep -E 'running|degraded'")
                    return True
            time.sleep(0.1)
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()

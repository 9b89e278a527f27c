"""Small Debian system in a folder, in which a test installs packages and runs guides."""

import contextlib
import platform
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "systemd,redis-server,ca-certificates,curl"
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "SYSTEMD_PAGER": "",
}
BLOCK = re.compile(r"^```(.*)\n((?s:.*?))^```$", re.MULTILINE)
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


def bootstrap(folder):
    """Installs this machine's version of Debian into a folder. A program needs its libraries."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
    command += ["--dpkgopt=force-unsafe-io", "--aptopt=Acquire::Languages none"]
    subprocess.run([*command, suite, folder], check=True, stdout=subprocess.DEVNULL)


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


class Booted:
    """Debian system in a folder. Its first process is systemd, in namespaces of systemd-nspawn."""

    def __init__(self, folder):
        self.folder, self.command = Path(folder), ()
        own = ["--quiet", "--register=no", "--keep-unit", "--private-network", "--directory"]
        self.log = self.path(f"{FOLDER}/console")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*DIES_WITH_US, *APART, "systemd-nspawn", *own, folder, "--boot"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self):
        """Waits until systemd has started the services."""
        end = time.monotonic() + BOOT_SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            for leader in (it for nspawn in children(self.process.pid) for it in children(nspawn)):
                self.command = ("nsenter", "--all", "--target", leader)
                with contextlib.suppress(Failure):
                    # Some units of a small system fail, so the state is running or degraded.
                    self.run("systemctl is-system-running --wait | grep -E 'running|degraded'")
                    return self
            time.sleep(0.1)
        self.__exit__()
        raise Failure(f"systemd-nspawn does not boot here:\n{self.log.read_text()}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

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


def run_guide(system, name):
    """Runs the blocks `sh package` of a guide word for word, in order, in a system.

    If a block `text` follows directly, it must be the output. Returns the number of blocks.
    """
    count, printed = 0, None
    for kind, text in BLOCK.findall((ROOT / "docs/guides" / name).read_text()):
        if kind == "sh package":
            count, printed = count + 1, system.run(text)
            continue
        if kind == "text" and printed is not None:
            said = f"{name} shows:\n{text}but the commands print:\n{printed}"
            check(text == printed, said)
        printed = None
    check(count > 0, f"{name} has no block: sh package")
    return count

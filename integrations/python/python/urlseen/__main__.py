"""The command `urlseen`, also as `python -m urlseen`."""

from __future__ import annotations

import signal
import sys
from typing import NoReturn

from urlseen._urlseen import run


def main() -> NoReturn:
    """Runs the command with the arguments of this process, and ends the process."""
    # Python's handler would only note the signal, and no Python code runs meanwhile.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run(["urlseen", *sys.argv[1:]]))


if __name__ == "__main__":
    main()

"""Mover: benches/mover.rs, which moves items without a filter. No filter can be faster."""

import subprocess
from dataclasses import dataclass

from . import process, programs


@dataclass(frozen=True)
class Mover:
    """Mover with its parameters."""

    batch: int
    in_flight: int
    # Percentage of the items that the mover pushes to the sink.
    pushed: int
    # Way to move items: plain, script or lmove.
    how: str = "plain"

    @property
    def case(self):
        name = {"plain": "mover", "script": "a script in Redis", "lmove": "LMOVE"}[self.how]
        batches = f"batches of {self.batch}, {self.in_flight} in flight"
        return f"{name}, {batches}, pushes {self.pushed} %"

    def run(self, server, stock):
        """Moves a copy of the stock once.

        Returns the seconds, and the processor nanoseconds of the server and of the mover.
        """
        program = programs.build_bench("mover")
        server.delete("source", "sink", "waiting")
        server.client.copy(stock, "waiting")
        arguments = [self.how, server.socket, "source", "sink", self.batch, self.in_flight]
        if self.how == "plain":
            arguments.append(self.pushed)
        mover = subprocess.Popen([program, *map(str, arguments)])
        try:
            server.wait_for_blocked()
            served = server.processor_time()
            used = [0]

            def watch():
                # The mover ends when the source is empty, so its last moments are not measured.
                if mover.poll() is None:
                    used[0] = sum(process.processor_time(mover.pid).values())
                elif mover.returncode:
                    raise RuntimeError(f"the mover ended with status {mover.returncode}")

            seconds = server.time_until_gone("source", "waiting", watch=watch)
            served = server.processor_time() - served
            if mover.wait(10) != 0:
                raise RuntimeError(f"the mover ended with status {mover.returncode}")
        finally:
            mover.kill()
            mover.wait()
        return seconds, served, used[0]

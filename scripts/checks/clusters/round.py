"""One round: a new group of servers, one crawl, and its faults."""

import shutil
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from . import server_faults
from .cluster import Cluster, ValkeyCluster
from .crawl import Crawl
from .oracle import Oracle
from .process_faults import ProcessFaults
from .producer import ListProducer, PartitionProducer
from .progress import say, until
from .sentinels import Sentinels
from .server_faults import ServerFaults


@dataclass
class Scene:
    """Servers of a round, and the settings of urlseen."""

    group: type
    #: Faults of the servers that only this scene has.
    moves: tuple = ()
    waits: bool = True
    place: str = "local"

    def faults(self):
        """Returns the faults of the servers that are possible."""
        # With two replicas, a promoted one would have to lag more than the other.
        lagged = () if self.group is Sentinels else ("lagged_failover",)
        return (*server_faults.COMMON, *lagged, *self.moves)


BY_KEYS = ("reshard", "move_slowly")
SCENES = {
    "cluster": Scene(Cluster, BY_KEYS),
    "no-wait": Scene(Cluster, BY_KEYS, waits=False),
    "sentinels": Scene(Sentinels),
    "valkey": Scene(ValkeyCluster, ("move_atomically",) * 3),
    "redis-filter": Scene(Cluster, BY_KEYS, place="redis"),
}


@dataclass
class Load:
    """Load of a round."""

    #: Minimum number of items.
    items: int
    #: Items in each second.
    rate: int


def run_round(scene, network, program, seed, load, kinds, of_processes):
    """Runs a round. Returns its verdict. If it fails, keeps the folder of all logs."""
    folder = Path(tempfile.mkdtemp(prefix="urlseen-clusters-"))
    try:
        verdict = Round(scene, network, program, seed, folder).run(load, kinds, of_processes)
    except BaseException:
        say(f"the logs are in {folder}")
        raise
    if verdict.is_good():
        shutil.rmtree(folder)
    else:
        say(f"the logs are in {folder}")
    return verdict


class Round:
    """Everything that runs during a round."""

    def __init__(self, scene, network, program, seed, folder):
        self.scene, self.network, self.program, self.seed = scene, network, program, seed
        self.folder, self.counts = folder, Counter()

    def run(self, load, kinds, of_processes):
        with ExitStack() as stack:
            draw = Random(f"{self.seed} settings")
            # Without waits, a primary that is alone must take writes, which it then loses.
            minimum = draw.choice([0, 1]) if self.scene.waits else 0
            group = self.scene.group(self.folder, self.network, minimum)
            stack.enter_context(group)
            wait = group.wait_replicas if self.scene.waits else 0
            crawl = Crawl(
                self.folder / "crawl", self.program, self.network, group, wait,
                self.scene.place, load.items,
            )
            stack.enter_context(crawl)
            crawl.begin()
            oracle = Oracle(crawl)
            producers = [
                kind(crawl, self.seed, load.rate / 2) for kind in (ListProducer, PartitionProducer)
            ]
            self.inject(group, crawl, oracle, producers, load.items, kinds, of_processes)
            crawl.end()
            verdict = oracle.judge(producers)
            verdict.faults = self.counts
            return verdict

    def inject(self, group, crawl, oracle, producers, items, kinds, of_processes):
        """Injects all faults of the servers, while producers push and processes fail."""
        is_done = threading.Event()
        of_servers = ServerFaults(
            group, crawl, self.network, self.seed, self.counts,
            None if self.scene.waits else oracle,
        )
        others = ProcessFaults(group, crawl, self.network, self.seed, self.counts)
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(it.work, is_done, items // 2) for it in producers]
            jobs.append(pool.submit(others.work, is_done, of_processes))
            try:
                # urlseen refuses a partition whose whole state was lost in a failover.
                until("batch of each partition on a replica", crawl.is_replicated)
                for kind in kinds:
                    of_servers.inject(kind)
                    for job in jobs:
                        if job.done():
                            job.result()
            finally:
                is_done.set()
            for job in jobs:
                job.result()

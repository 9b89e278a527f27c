"""Sections of the benchmarks: a module for each, with `run(settings)`.

It returns a dictionary with `lines` and, if there is something to say about them, `facts`.
"""

from . import between, crawl, kernels, latency, layouts, lines, log, peers, pipe, profile, scaling

SECTIONS = {
    "pipe": pipe.run,
    "peers": peers.run,
    "layouts": layouts.run,
    "crawl": crawl.run,
    "kernels": kernels.run,
    "between": between.run,
    "scaling": scaling.run,
    "latency": latency.run,
    "lines": lines.run,
    "log": log.run,
    "profile": profile.run,
}

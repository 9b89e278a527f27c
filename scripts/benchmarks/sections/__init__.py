"""Sections of the benchmarks. Each is a module with a function `run(settings)`.

The function returns a dictionary with `lines` of data and, in some sections, `facts` about them.
"""

from . import (
    between, crawl, fastbloom, growing, kernels, latency, layouts, lines, log, partitions, peers,
    pipe, profile, python, rules, scaling, stream,
)

SECTIONS = {
    "pipe": pipe.run,
    "peers": peers.run,
    "layouts": layouts.run,
    "crawl": crawl.run,
    "kernels": kernels.run,
    "rules": rules.run,
    "fastbloom": fastbloom.run,
    "growing": growing.run,
    "between": between.run,
    "scaling": scaling.run,
    "partitions": partitions.run,
    "latency": latency.run,
    "lines": lines.run,
    "stream": stream.run,
    "python": python.run,
    "log": log.run,
    "profile": profile.run,
}

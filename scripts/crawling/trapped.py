"""Site with real pages and with traps: URLs that a crawl could follow for a very long time.

Every page is also reachable with a session id and with tracking parameters, and so as many URLs.
A search combines facets, and a calendar has pages for all months of ten thousand years.
"""

import asyncio
import hashlib
import random
import sys
from collections import Counter
from urllib.parse import parse_qsl, urlsplit

FACETS = {
    "brand": "acme globex hooli initech umbrella stark wayne wonka tyrell soylent".split(),
    "color": "red blue green black white pink gray brown gold teal".split(),
    "size": "xs s m l xl xxl one kids tall wide".split(),
    "sort": "price name new rating stock weight age length sales random".split(),
}
#: Number of pages of each search.
RESULTS = 10
#: Months of the calendar, counted from the year 0.
MONTHS = range(12 * 10_000)
#: Numbers of session ids and of campaigns that the site uses.
SESSIONS, CAMPAIGNS = 25, 5
#: Number of real pages that a category links to.
CATEGORY = 20


class Site:
    """Site with about this number of real pages."""

    def __init__(self, count):
        self.count = count
        draw = random.Random(11)
        words = ["oak", "pine", "lamp", "desk", "chair", "shelf", "frame", "clock", "vase", "rug"]
        names = ("-".join(draw.choice(words) for _ in range(5)) for _ in range(count))
        products = count - 2 - count // CATEGORY
        self.products = [
            f"/p/{name}" if number % 2 else f"/product/{number}"
            for number, name in zip(range(products), names)
        ]
        self.categories = [f"/c/{number}" for number in range(count // CATEGORY)]
        self.real = {"/", "/search", *self.products, *self.categories}
        self.paths = sorted(self.real)

    def trap_count(self):
        """Returns the number of URLs that lead to no further real page."""
        searches = RESULTS
        for values in FACETS.values():
            searches *= len(values)
        return len(self.real) * (SESSIONS + CAMPAIGNS) + searches + len(MONTHS)

    def links(self, path, query):
        """Returns the links of a page."""
        draw = random.Random(f"{path}?{query}")
        plain = self.plain_links(path, query, draw)
        session, campaign = draw.randrange(SESSIONS), draw.randrange(CAMPAIGNS)
        sid = hashlib.sha1(f"session {session}".encode()).hexdigest()[:20]
        yield from plain
        for target in draw.sample(self.paths, 4):
            yield f"{target}?sid={sid}"
        for target in draw.sample(self.paths, 4):
            yield f"{target}?utm_source=mail&utm_campaign=c{campaign}"

    def plain_links(self, path, query, draw):
        if path == "/":
            return [*self.categories, "/search", "/calendar/2026/11"]
        if path.startswith("/c/"):
            first = CATEGORY * int(path.removeprefix("/c/"))
            return [*self.products[first : first + CATEGORY], "/"]
        if path == "/search":
            return [self.search(query, draw) for _ in range(12)]
        if path.startswith("/calendar/"):
            year, month = (int(part) for part in path.split("/")[2:])
            here = 12 * year + month - 1
            years = [here + 12 * step for step in range(-16, 17) if step]
            return [calendar(it) for it in (here - 1, here + 1, *years) if it in MONTHS]
        day = calendar(draw.randrange(12 * 2020, 12 * 2030))
        return [*draw.sample(self.products, 4), "/", day]

    def search(self, query, draw):
        """Returns the link to a search that differs from the present one in some facets."""
        chosen = {name: value for name, value in parse_qsl(query) if name in FACETS}
        for name in draw.sample(sorted(FACETS), 2):
            chosen[name] = draw.choice(FACETS[name])
        fields = [f"{name}={value}" for name, value in sorted(chosen.items())]
        return f"/search?{'&'.join([*fields, f'page={draw.randint(1, RESULTS)}'])}"


def calendar(month):
    """Returns the path of a month of the calendar."""
    return f"/calendar/{month // 12}/{month % 12 + 1:02}"


class Server:
    """Web server of the site on loopback, which counts the requests for each page."""

    def __init__(self, site):
        self.site = site
        #: Number of requests for each path.
        self.fetched = Counter()

    async def answer(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                url = urlsplit(head.split(b" ", 2)[1].decode())
                self.fetched[url.path] += 1
                links = self.site.links(url.path, url.query)
                body = "".join(f'<a href="{link.replace("&", "&amp;")}">x</a>\n' for link in links)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(body), body.encode())
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def main():
    """Serves a site: trapped.py COUNT. Prints the port, and the counts at the end of its input."""
    server = Server(Site(int(sys.argv[1])))
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for path, count in server.fetched.items():
        print(count, path)


if __name__ == "__main__":
    asyncio.run(main())

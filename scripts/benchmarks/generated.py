"""Serves a generated site: generated.py PORT PAGES LINKS

Page N is `/p/N`. Every page has LINKS links, drawn by a fixed seed; the first one leads to page
N + 1, so that all pages are found.
"""

import asyncio
import random
import sys


def pages(count, links, suffix=""):
    """Returns the pages in their order. The name of each page ends with `suffix`."""
    draw = random.Random(7)
    for number in range(count):
        targets = [(number + 1) % count, *(draw.randrange(count) for _ in range(links - 1))]
        body = "".join(link(it, suffix) for it in targets)
        yield f"<html><body>{body}</body></html>".encode()


def link(number, suffix):
    return f'<a href="/p/{number}{suffix}?id={number}&from=site">page {number}</a>\n'


async def main():
    port, count, links = map(int, sys.argv[1:])
    bodies = list(pages(count, links))

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].partition(b"?")[0]
                body = bodies[int(path.removeprefix(b"/p/"))]
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s"
                    % (len(body), body)
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

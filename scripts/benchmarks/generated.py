"""Serves a generated site: generated.py PORT PAGES LINKS

Page N is `/p/N`. Its first link leads to page N + 1, so that all pages are found. The others are
drawn by a fixed seed.
"""

import random
import sys

from aiohttp import web

port, count, links = map(int, sys.argv[1:])


async def page(request):
    number = int(request.match_info["number"])
    draw = random.Random(number)
    targets = [(number + 1) % count, *(draw.randrange(count) for _ in range(links - 1))]
    body = "".join(f'<a href="/p/{it}?id={it}&from=site">page {it}</a>\n' for it in targets)
    return web.Response(text=f"<html><body>{body}</body></html>", content_type="text/html")


site = web.Application()
site.router.add_get("/p/{number}", page)
web.run_app(site, host="127.0.0.1", port=port, print=None)

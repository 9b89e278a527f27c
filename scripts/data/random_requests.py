"""Random requests that are difficult for ports of Scrapy's fingerprints.

They use only code points of Unicode 14.0, because later ones differ between versions of Python.
"""

import random
import sys
import unicodedata

import hard_urls as hard
from reference import Case

ASSIGNED = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs")
]
# Letters that have special rules in hosts. They are drawn more often than other letters.
PECULIAR = [
    letter
    for letter in ASSIGNED
    if not letter.isascii()
    and (
        unicodedata.combining(letter)
        or unicodedata.bidirectional(letter) in ("R", "AL", "AN", "EN")
        or letter.lower() != letter
        or (unicodedata.normalize("NFKC", letter) != letter and not "가" <= letter <= "힣")
        or unicodedata.category(letter) in ("Cf", "Zs", "Zl", "Zp", "Cc")
    )
]
LETTER_HOSTS = (
    "{0}", "a{0}", "{0}é", "א{0}", "Σ{0}", "aΣ{0}", "{0}Σ", "{0}\u0338", "a{0}Σ{0}b", "é.{0}.é",
)
LETTER_REQUESTS = len(ASSIGNED) * len(LETTER_HOSTS)


def random_text(rng, longest=8):
    """Draws a few characters of one kind."""
    pool = rng.choice((ASSIGNED, PECULIAR, PECULIAR, hard.PIECES, "abcXYZ019-._~%/;?&=+:@[]\\'|"))
    return "".join(rng.choices(pool, k=rng.randint(1, longest)))


def assembled(rng):
    """Assembles a URL from difficult parts."""
    host = rng.choice(hard.HOSTS)
    if rng.random() < 0.2:
        host = random_text(rng)
        if rng.random() < 0.3:
            host = f"{random_text(rng, 3)}.{host}"
    elif rng.random() < 0.1:
        host = ".".join(rng.choices(hard.HOSTS, k=2))
    scheme = rng.choice(hard.SCHEMES[:2]) if rng.random() < 0.6 else rng.choice(hard.SCHEMES)
    queries = rng.choices(hard.QUERIES, k=rng.choice((0, 1, 1, 2)))
    return "".join((
        scheme,
        "://" if rng.random() < 0.8 else rng.choice(hard.SEPARATORS),
        rng.choice(hard.USER_INFO) if rng.random() < 0.15 else "",
        host,
        rng.choice(hard.PORTS) if rng.random() < 0.3 else "",
        *(rng.choice(hard.PATHS) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))),
        *queries[:1],
        *(query.replace("?", "&", 1) for query in queries[1:]),
        rng.choice(hard.FRAGMENTS) if rng.random() < 0.3 else "",
    ))


def mutated(rng, url):
    """Returns the URL with one small change."""
    at = rng.randint(0, len(url))
    to = min(len(url), at + rng.choice((0, 1, 1, 1, 2, 5)))
    change = rng.randrange(8)
    if change == 0:
        return url[:at] + url[to:]
    if change == 1:
        return url[:at] + random_text(rng, 3) + url[to:]
    if change == 2:
        return url[:at] + url[at:to].swapcase() + url[to:]
    if change == 3:
        escaped = "".join(f"%{byte:02x}" for byte in url[at:to].encode())
        return url[:at] + escaped + url[to:]
    if change == 4:
        other = assembled(rng)
        return url[:at] + other[rng.randint(0, len(other)):]
    if change == 5:
        return url[:to] + url[at:]
    if change == 6:
        return url[:at] + chr(rng.randrange(128)) + url[to:]
    return url[:at] + rng.choice(hard.PIECES) + url[at:]


def request(seed, number, keep_fragments):
    """Returns the request with this number, which is always the same."""
    rng = random.Random(f"{seed}/{number}")
    url = rng.choice(hard.WHOLE) if rng.random() < 0.1 else assembled(rng)
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 3, 8))):
        url = mutated(rng, url)
    plain = rng.random() < 0.9
    return Case(
        url=url,
        method="GET" if plain else rng.choice(hard.METHODS),
        body=b"" if plain else rng.choice(hard.BODIES),
        verbatim_url=not plain and rng.random() < 0.3,
        keep_fragments=keep_fragments,
    )


def letter_request(_seed, number, keep_fragments):
    """Returns a request with one letter in its host. `number` is below LETTER_REQUESTS."""
    letter, host = divmod(number, len(LETTER_HOSTS))
    host = LETTER_HOSTS[host].format(ASSIGNED[letter])
    return Case(url=f"http://{host}/", keep_fragments=keep_fragments)

"""Filter with the formulas of BloomFilter_imooc, which no registry has.

As in the published code, each hash is a command: `GETBIT` tests a bit, `SETBIT` sets a bit. The
program waits for each answer.
"""

import math

import mmh3

# The published code has a hundred other seeds. They make no difference to the time.
SEEDS = range(100)
BLOCK_MIB = 512
LAST_BIT = 2**32 - 1


class Filter:
    def __init__(self, connection, key, capacity, error_rate):
        self.connection, self.key = connection, key
        self.bits = math.ceil(capacity * math.log2(math.e) * math.log2(1 / error_rate))
        self.hashes = math.ceil(math.log(3) * self.bits / capacity)
        self.blocks = math.ceil(math.ceil(self.bits / 8 / 2**20) / BLOCK_MIB)

    def grow(self):
        """Gives all strings their full length."""
        for block in range(self.blocks):
            self.connection.setbit(f"{self.key}_{block}", LAST_BIT, 0)

    def positions(self, text):
        """Returns the key of the string for a text, and the positions of the bits in it."""
        block = ord(text[0]) % self.blocks
        hashes = (mmh3.hash(text, seed) for seed in SEEDS[: self.hashes])
        return f"{self.key}_{block}", [h if h >= 0 else 2**31 - 1 - h for h in hashes]

    def has(self, text):
        name, positions = self.positions(text)
        return all([self.connection.getbit(name, position) for position in positions])

    def add(self, text):
        name, positions = self.positions(text)
        for position in positions:
            self.connection.setbit(name, position, 1)

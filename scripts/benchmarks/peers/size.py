"""Capacity and error rate of the filters of peers that let one choose."""

CAPACITY = 100_000_000
ERROR_RATE = 1e-8

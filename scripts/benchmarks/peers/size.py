"""Capacity and error rate of peers whose size can be set."""

CAPACITY = 100_000_000
ERROR_RATE = 1e-8

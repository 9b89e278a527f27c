"""What a filter is made for, where a peer lets one choose."""

CAPACITY = 100_000_000
ERROR_RATE = 1e-8

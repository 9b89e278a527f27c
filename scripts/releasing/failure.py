"""Reason why there is no release, for the person who makes it."""


class Failure(Exception):
    """Failure of a check. Nothing has changed."""

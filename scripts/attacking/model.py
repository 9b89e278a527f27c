"""The members of one client: which of them the filter has, and which it may have."""

import json
from collections import deque

# So many members, that are added and forgotten again and again.
MEMBERS = 1500
# Judged by nothing: always new, never there.
UNFILTERED = -1


class Model:
    """What the daemon answered is sure. What it was sent is ahead of that."""

    def __init__(self, number):
        self.number = number
        self.sure, self.ahead = set(), set()
        # Of each command that is not answered: the members that it changes, in order.
        self.pending = deque()

    def spelling(self, member, chance):
        """One of the ways to write a member; half of the members are URLs."""
        if member % 2 and member != UNFILTERED:
            return b"own-%d-%d \r\n\xff\0" % (self.number, member)
        host = chance.choice(["example.com", "EXAMPLE.com"])
        query = chance.choice(["a=1&b=2", "b=2&a=1"])
        end = chance.choice(["", "#top"])
        url = f"https://{host}/own/{self.number}/{member}?{query}{end}"
        if member == UNFILTERED:
            return json.dumps({"url": url, "dont_filter": True}).encode()
        return chance.choice([url, json.dumps({"url": url})]).encode()

    def some(self, chance, count):
        """Members, some of them more than once, some unfiltered."""
        low = chance.choice([0, 0, MEMBERS - 20])
        members = [chance.randrange(low, MEMBERS) for _ in range(count)]
        return [UNFILTERED if chance.random() < 0.01 else member for member in members]

    def has(self, members):
        return [member in self.ahead for member in members]

    def add(self, members):
        """Adds members. Returns of each whether it is new."""
        return [self.change(member, True) for member in members]

    def forget(self, members):
        """Forgets members. Returns of each whether it was there."""
        return [self.change(member, False) for member in members]

    def change(self, member, is_there):
        if member == UNFILTERED:
            return is_there
        changes = (member in self.ahead) != is_there
        (self.ahead.add if is_there else self.ahead.discard)(member)
        return changes

    def answered(self):
        """The oldest command is answered: what it changed must be remembered."""
        for member, is_there in self.pending.popleft():
            (self.sure.add if is_there else self.sure.discard)(member)

    def restarted(self, seen):
        """Compares with what is there after a kill. A member that unanswered commands change may
        be as it was before them or after any of them."""
        may = {member: {member in self.sure} for member in range(MEMBERS)}
        for change in self.pending:
            for member, is_there in change:
                may[member].add(is_there)
        for member, is_there in enumerate(seen):
            if is_there not in may[member]:
                be = "is there, and was forgotten" if is_there else "was answered, and is lost"
                raise AssertionError(f"member {member} of client {self.number} {be}")
        self.pending.clear()
        self.sure = {member for member, is_there in enumerate(seen) if is_there}
        self.ahead = set(self.sure)

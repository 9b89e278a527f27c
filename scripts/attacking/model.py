"""Model of one client's members: those that the filter has, and those that it may have."""

import json
from collections import deque

# Number of members that are added and forgotten again and again.
MEMBERS = 1500
# Unfiltered members: always new, never there.
UNFILTERED = -1


class Model:
    """Members as the daemon answered, and as they are after the commands without an answer."""

    def __init__(self, number):
        self.number = number
        self.sure, self.ahead = set(), set()
        # For each command without an answer: the members that it changes, in order.
        self.pending = deque()

    def spelling(self, member, chance):
        """Returns one of the ways to write a member. Half of the members are URLs."""
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
        """Draws members, some of them more than once, some unfiltered."""
        low = chance.choice([0, 0, MEMBERS - 20])
        members = [chance.randrange(low, MEMBERS) for _ in range(count)]
        return [UNFILTERED if chance.random() < 0.01 else member for member in members]

    def has(self, members):
        return [member in self.ahead for member in members]

    def add(self, members):
        """Adds members. Returns for each `True` if it is new."""
        return [self.change(member, True) for member in members]

    def forget(self, members):
        """Forgets members. Returns for each `True` if it was there."""
        return [self.change(member, False) for member in members]

    def change(self, member, is_there):
        if member == UNFILTERED:
            return is_there
        changes = (member in self.ahead) != is_there
        (self.ahead.add if is_there else self.ahead.discard)(member)
        return changes

    def answered(self):
        """Notes that the oldest command is answered: its changes must survive."""
        for member, is_there in self.pending.popleft():
            (self.sure.add if is_there else self.sure.discard)(member)

    def restarted(self, seen):
        """Compares with the members after a kill. A member that unanswered commands change may be
        as it was before them or after any of them."""
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

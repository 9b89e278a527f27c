"""Model of the members of one client: those that the filter has, and those that it may have."""

import json
from collections import deque

# Number of members of a client. The client adds and forgets them repeatedly.
MEMBERS = 1500
# Unfiltered members. They are always new, and the filter never has them.
UNFILTERED = -1


class Model:
    """Members of one client, which the filter should have.

    `sure` has the members after the answered commands. `ahead` has the members after all commands,
    including commands without an answer.
    """

    def __init__(self, number):
        self.number = number
        self.sure, self.ahead = set(), set()
        # The changes of each command without an answer, in order.
        self.pending = deque()

    def spelling(self, member, chance):
        """Returns a member, in one of its forms. Half of the members are URLs."""
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
        """Draws members. Some of them are drawn more than once, and some are unfiltered."""
        low = chance.choice([0, 0, MEMBERS - 20])
        members = [chance.randrange(low, MEMBERS) for _ in range(count)]
        return [UNFILTERED if chance.random() < 0.01 else member for member in members]

    def has(self, members):
        return [member in self.ahead for member in members]

    def add(self, members):
        """Adds members. Returns `True` for each new member."""
        return [self.change(member, True) for member in members]

    def forget(self, members):
        """Forgets members. Returns `True` for each member that the filter had."""
        return [self.change(member, False) for member in members]

    def change(self, member, is_there):
        if member == UNFILTERED:
            return is_there
        changes = (member in self.ahead) != is_there
        (self.ahead.add if is_there else self.ahead.discard)(member)
        return changes

    def answered(self):
        """Notes the answer to the oldest command. From now on, its changes must survive a kill."""
        for member, is_there in self.pending.popleft():
            (self.sure.add if is_there else self.sure.discard)(member)

    def restarted(self, seen):
        """Compares the model with the members that the filter has after a kill.

        Before the kill, the daemon may have executed any number of the commands without an answer.
        """
        may = {member: {member in self.sure} for member in range(MEMBERS)}
        for change in self.pending:
            for member, is_there in change:
                may[member].add(is_there)
        for member, is_there in enumerate(seen):
            if is_there not in may[member]:
                be = "is there, but was forgotten" if is_there else "was added, but is lost"
                raise AssertionError(f"member {member} of client {self.number} {be}")
        self.pending.clear()
        self.sure = {member for member, is_there in enumerate(seen) if is_there}
        self.ahead = set(self.sure)

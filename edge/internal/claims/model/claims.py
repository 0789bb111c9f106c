"""A model of the claim protocol of package claims: random interleavings of single Redis commands.

Each `yield` is one Redis command, one request to Kafka, or one wait, so every interleaving of single commands can
happen. Faults: a process dies, or stalls for longer than TAKEOVER_AFTER, at any step; a record is refused, or its
outcome is unknown (stored or not). Checked: a signal is accepted at most once; accepted and duplicate are answered only
for signals in the log; after the faults a resend is answered.

    python3 claims.py RUNS          plays RUNS histories, and fails when one breaks a rule
    python3 claims.py RUNS BUG      plants a bug, and fails when no history finds it
    python3 claims.py RUNS all      plays without a bug, and with each of them
"""
import random
import sys

TAKEOVER_AFTER, DEADLINE = 10.0, 4.0
DONE, RELEASED, LOST = "done", "released", "lost"
BUGS = ("open_is_duplicate", "lost_is_ignored", "released_is_duplicate", "takeover_without_compare")


class World:
    """Redis, Kafka's log, and what was answered."""

    def __init__(self, rng, bug=None):
        self.rng, self.bug, self.now = rng, bug, 0.0
        self.claims = {}    # key -> (attempt, priority, time of the claim)
        self.statuses = {}  # attempt -> status, written once
        self.log = set()    # keys of the stored signals
        self.attempts = 0
        self.accepted = {}  # key -> number of answers
        self.faults = True

    def new_attempt(self):
        self.attempts += 1
        return self.attempts

    def claim(self, key, attempt, priority):
        """SET NX GET: returns the claim that was there."""
        previous = self.claims.get(key)
        if previous is None:
            self.claims[key] = (attempt, priority, self.now)
        return previous

    def compare_and_swap(self, key, old, attempt, priority):
        if self.claims.get(key) != old and self.bug != "takeover_without_compare":
            return False
        self.claims[key] = (attempt, priority, self.now)
        return True

    def resolve(self, attempt, status):
        """SET NX GET: returns the status that was there."""
        previous = self.statuses.get(attempt)
        if previous is None:
            self.statuses[attempt] = status
        return previous


def request(w, keys, priority):
    """One request: a generator of steps, which returns the status code and (held, recorded) keys of a 202."""
    start = w.now
    while True:
        attempt = w.new_attempt()
        held, recorded, pending = [], [], list(keys)
        must_yield = False
        while pending and not must_yield:
            pending, must_yield = yield from settle(w, attempt, priority, pending, held, recorded)
            if w.now - start > DEADLINE:
                yield
                w.resolve(attempt, RELEASED)
                return "503", None
            if pending and not must_yield:
                yield "wait"
        if not must_yield:
            break
        yield
        w.resolve(attempt, RELEASED)
        yield "wait"
        if w.now - start > DEADLINE:
            return "503", None
    if held and not (yield from produce_and_confirm(w, attempt, held)):
        return "503", None
    return "202", (held, recorded)


def settle(w, attempt, priority, pending, held, recorded):
    """Claims the keys. Returns those that are still pending, and whether to release what is held and begin again."""
    rest, others, must_yield = [], [], False
    for key in pending:
        yield
        other = w.claim(key, attempt, priority)
        if other is None or other[0] == attempt:
            held.append(key)
        else:
            others.append((key, other))
    for key, other in others:
        yield
        status = w.statuses.get(other[0])
        if status is None and w.now - other[2] >= TAKEOVER_AFTER:
            yield
            status = w.resolve(other[0], LOST) or LOST
        if status == DONE or status is None and w.bug == "open_is_duplicate" \
                or status == RELEASED and w.bug == "released_is_duplicate":
            recorded.append(key)
        elif status is None:
            rest.append(key)
            must_yield = must_yield or other[1] > priority
        else:
            yield
            if w.compare_and_swap(key, other, attempt, priority):
                held.append(key)
            else:
                rest.append(key)
    return rest, must_yield


def produce_and_confirm(w, attempt, held):
    """Sends the record and writes done. Returns whether the answer is 202."""
    yield
    outcome = w.rng.random() if w.faults else 1.0
    if outcome < 0.2:  # refused, or unknown
        if outcome >= 0.1 and w.rng.random() < 0.5:
            w.log.update(held)
        yield
        w.resolve(attempt, RELEASED)
        return False
    w.log.update(held)
    yield
    return w.resolve(attempt, DONE) != LOST or w.bug == "lost_is_ignored"


class Client:
    """Sends one batch until it is content with an answer."""

    def __init__(self, keys, requests):
        self.keys, self.requests_left = keys, requests
        self.steps, self.asleep_until = None, 0.0

    def active(self):
        return self.steps is not None or self.requests_left > 0

    def step(self, w):
        """Makes one step. Returns the status code when the request ends with it."""
        if self.steps is None:
            self.steps = request(w, self.keys, w.rng.random())
        try:
            w.now += 0.05 if next(self.steps) == "wait" else 0.0005
        except StopIteration as end:
            self.steps = None
            code, answer = end.value
            if code == "202":
                check(w, *answer)
            return code
        return None


def check(w, held, recorded):
    for key in held:
        w.accepted[key] = w.accepted.get(key, 0) + 1
        assert key in w.log, f"accepted and not in the log: {key}"
        assert w.accepted[key] == 1, f"accepted twice: {key}"
    for key in recorded:
        assert key in w.log, f"false duplicate: {key}"


def history(seed, bug=None):
    rng = random.Random(seed)
    w = World(rng, bug)
    keys = list(range(rng.randint(1, 5)))
    clients = [Client(rng.sample(keys, rng.randint(1, len(keys))), rng.randint(1, 4)) for _ in range(rng.randint(2, 7))]
    for steps in range(20_001):
        active = [c for c in clients if c.active()]
        if not active:
            break
        assert steps < 20_000, "no progress"
        c = rng.choice(active)
        if c.asleep_until > w.now:
            w.now += rng.choice((0.001, 0.05, 0.5))
        elif rng.random() < 0.01:
            if rng.random() < 0.5:  # the process dies; the client may send the batch again
                c.steps = None
                c.requests_left -= 1
            else:
                c.asleep_until = w.now + 1.5 * TAKEOVER_AFTER
        else:
            code = c.step(w)
            if code is not None:
                c.requests_left = 0 if code == "202" and rng.random() < 0.6 else c.requests_left - 1
    w.faults = False
    for key in keys:  # every signal is sent again until it is answered
        c, began = Client([key], 1), w.now
        while c.step(w) != "202":
            assert w.now - began < 3 * TAKEOVER_AFTER, f"the resend of {key} does not end"
    assert w.log == set(keys), "a signal is answered and not in the log"


def play(runs, bug=None):
    """Returns whether the histories ended as they should."""
    failed = 0
    for seed in range(runs):
        try:
            history(seed, bug)
        except AssertionError as e:
            failed += 1
            if failed <= 3:
                print(f"  seed {seed}: {e}")
    print(f"{runs} histories, {failed} break a rule" + (f" (planted bug {bug})" if bug else ""))
    return (failed > 0) == (bug is not None)


if __name__ == "__main__":
    runs = int(sys.argv[1])
    which = sys.argv[2] if len(sys.argv) > 2 else None
    bugs = (None,) + BUGS if which == "all" else (which,)
    sys.exit(0 if all([play(runs, bug) for bug in bugs]) else 1)

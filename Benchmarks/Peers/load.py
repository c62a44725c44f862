"""Requests made beforehand, and the C program that sends them (load_main.c): the same for all who
speak HTTP, so that its cost is the same for all."""
import json
import os
import subprocess
import time

from machine import Failure, processor_seconds

# In each group, how many records those are behind whose bytes are counted.
DISTANCES = {'idle': (0,), 'behind': (1, 100, 10_000)}


class Request:
    """One request; places are counted from its beginning, 0 for none."""

    def __init__(self, method, path, headers='', body=None, revision_at=0, lineage_at=0):
        head = f'{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}'
        if body is not None:
            head += f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n'
        head = (head + '\r\n').encode()
        self.bytes = head + (body or b'')
        self.revision_at = revision_at and revision_at + len(head)
        self.lineage_at = lineage_at and lineage_at + len(head)


class Outcome:
    """What a run came to. Times in seconds; `servers` and `databases` are their CPU."""

    def __init__(self, told, servers, databases):
        self.servers, self.databases = servers, databases
        self.seconds, self.own = told['seconds'], told['own']
        self.received, self.failures = told['received'], told['failures']
        self.status = told['status']
        self.revision, self.lineage = told['revision'], told['lineage']
        self.latencies = sorted(nanoseconds / 1e9 for nanoseconds in told['latencies'])

    def latency(self, quantile):
        return self.latencies[min(len(self.latencies) - 1, int(len(self.latencies) * quantile))]


class Meter:
    """CPU of a server and of the databases beneath it, since it was made."""

    def __init__(self, servers, databases=()):
        self.roots = (servers, databases)
        self.before = [processor_seconds(roots) for roots in self.roots]
        self.began = time.monotonic()

    def read(self):
        """CPU seconds of the server, of the databases, and seconds gone by."""
        seconds = time.monotonic() - self.began
        used = [processor_seconds(roots) - before for roots, before in zip(self.roots, self.before)]
        return max(used[0], 0), max(used[1], 0), seconds


def run(port, lists, servers, databases=(), status=200, may_fail=False):
    """Sends lists of requests, each on a connection of its own.

    `may_fail`: answers of another status are counted and not an error."""
    requests = [request for requests in lists for request in requests]
    head = [f'{port} {len(lists)} {len(lists[0])} {status}']
    head += [f'{len(one.bytes)} {one.revision_at} {one.lineage_at}' for one in requests]
    plan = '\n'.join(head).encode() + b'\n' + b''.join(one.bytes for one in requests)
    meter = Meter(servers, databases)
    done = subprocess.run([os.environ['PEERS_LOAD']], input=plan, capture_output=True)
    used = meter.read()
    if done.returncode != 0:
        raise Failure(done.stderr.decode().strip() or 'the load broke off')
    outcome = Outcome(json.loads(done.stdout), *used[:2])
    if outcome.failures and not may_fail:
        raise Failure(f'{outcome.failures} of {len(requests)} answers were not {status}; the first '
                      f'was {outcome.status}')
    return outcome

"""Runs the comparison: everybody's servers side by side, in turn, round after round. Started by
scripts/bench-peers, which has installed and built what it needs."""
import os
import shutil
import signal
import sys
import tempfile
from importlib.metadata import version

from anki_peer import Anki
from databases import Databases
from kinto_peer import Kinto
from machine import Failure, describe
from martlet_peer import Martlet
from organisation import Organisation
from report import Report


def say(sentence):
    print(f'bench-peers: {sentence}', file=sys.stderr, flush=True)


def measure(group, peers, rounds, machine):
    """One group: a round that warms up, then those that count, then the bytes."""
    report = Report(group, machine)
    for number in range(rounds + 1):
        say(f'{group}: ' + (f'round {number} of {rounds}' if number else 'warming up'))
        for peer in peers:
            cases = getattr(peer, group)()
            if number:
                report.add(peer.name, cases)
    if group != 'push':
        for peer in peers:
            report.add(peer.name, peer.counted(group))
    report.print([peer.name for peer in peers])


def end(*_):
    raise SystemExit(143)


def main():
    count, rounds, groups = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    folder = tempfile.mkdtemp(prefix='martlet-peers-')
    peers = []
    try:
        databases = Databases()
        print(f'{describe()}; PostgreSQL {databases.version()}, Kinto {version("kinto")}, gunicorn '
              f'{version("gunicorn")}, Anki {version("anki")}; {count:,} records', flush=True)
        organisation = Organisation(count)
        within = lambda name: os.path.join(folder, name)
        for make in (
                lambda: Martlet(within('martlet'), organisation),
                lambda: Martlet(within('martlet-postgres'), organisation, databases),
                lambda: Kinto(within('kinto'), organisation, databases),
                lambda: Anki(within('anki'), organisation)):
            peers.append(make())
            say(f'{peers[-1].name}: loading {count:,} records')
            peers[-1].prepare()
        databases.analyse('martlet_peer')
        for group in groups:
            measure(group, peers, rounds, describe())
        return 0
    except Failure as failure:
        say(failure)
        return 1
    finally:
        for peer in peers:
            peer.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main())

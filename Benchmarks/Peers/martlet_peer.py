"""Martlet: the released program, on a file or on PostgreSQL and Redis."""
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import time

import load
from machine import Child, Failure, Relay
from organisation import POSTGRES_SCHEMA, SCHEMA, TEAMS

TOKEN = 'bench-' + secrets.token_hex(8)
DEVICES = 50
PUSHES = ((DEVICES, 100), (1, 200))  # devices, and the sets of each
REVISION_WIDTH, LINEAGE_WIDTH = 12, 32  # CLoad.h
ANNOUNCED = '"maxRevision":'


def types(name, first, texts):
    """The members of a change set that creates records with temporary ids from `first` down."""
    ids = [str(-(first + index)) for index in range(len(texts))]
    attributes = ','.join(f'"{id}":{text}' for id, text in zip(ids, texts))
    return (f'"types":["{name}"],"{name}":{{"create":[{",".join(ids)}],"update":[],"delete":[],'
            f'"attributes":{{{attributes}}}}}')


def request(client, head, members=None, sequence=0, accepts_gzip=False, follows=True):
    """One exchange. `follows`: after the first on its connection it names what the last answer
    reached."""
    revision, lineage = head
    body = f'{{"clientId":"{client}","protocol":1,{ANNOUNCED}'
    revision_at = len(body)
    body += f'{revision:>{REVISION_WIDTH}}'
    lineage_at = 0
    if lineage:
        body += ',"lineage":"'
        lineage_at = len(body)
        body += lineage + '"'
    if sequence:
        body += f',"acknowledged":{sequence - 1}'
    body += ',"changeSets":['
    if members:
        body += (f'{{"identifier":"{client}-{sequence}","sequence":{sequence},'
                 f'"timestamp":"2026-11-21T09:12:44.120Z",{members}}}')
    headers = f'Authorization: Bearer {TOKEN}\r\n'
    if accepts_gzip:
        headers += 'Accept-Encoding: gzip\r\n'
    return load.Request(
        'POST', '/sync', headers, (body + ']}').encode(), revision_at if follows else 0,
        lineage_at if follows else 0)


class Martlet:
    def __init__(self, folder, organisation, databases=None):
        """`databases`: what makes PostgreSQL databases, where the data set is to be one."""
        self.name = 'Martlet, PostgreSQL' if databases else 'Martlet, SQLite'
        self.folder, self.organisation, self.databases = folder, organisation, databases
        self.program = os.environ['PEERS_MARTLET']
        self.below = databases.processes if databases else ()
        self.head = (0, None)
        self.sequences = {}
        self.slices = {}
        os.mkdir(folder)
        self.start()

    # The server

    def start(self):
        schema = os.path.join(self.folder, 'schema.sql')
        with open(schema, 'w') as file:
            file.write(POSTGRES_SCHEMA if self.databases else SCHEMA)
        command = [self.program, 'serve', '--data', os.path.join(self.folder, 'server'), '--port',
                   '0', '--log', 'error', '--token', f'league:{TOKEN}']
        if self.databases:
            url = self.databases.create('martlet_peer')
            subprocess.run([self.program, 'postgres', 'init', '--postgres', url, '--name', 'league',
                            '--schema', schema], check=True, stdout=subprocess.DEVNULL)
            command += ['--postgres', url, '--redis', self.databases.redis]
        else:
            command += ['--schema', schema]
        self.child = Child(
            command, os.path.join(self.folder, 'log'), stdout=subprocess.PIPE)
        line = self.child.process.stdout.readline().decode()
        port = re.search(r':(\d+)\s*$', line)
        if not port:
            raise Failure(f'{self.name} did not say on which port it listens: {line}')
        self.port = int(port.group(1))

    def stop(self):
        self.child.stop()

    @property
    def servers(self):
        return [self.child.process.pid]

    def run(self, lists):
        return load.run(self.port, lists, self.servers, self.below)

    # Where the log stands

    def advance(self, lists, sets):
        """Sends change sets; all must be accepted."""
        expected = self.head[0] + sets
        outcome = self.run(lists)
        reached, _, _ = self.walk(max(self.head, (outcome.revision, outcome.lineage)))
        if reached[0] != expected:
            raise Failure(f'{self.name}: the log ends at {reached[0]}; {expected} was expected')
        self.head = reached
        return outcome

    def walk(self, head, accepts_gzip=False):
        """Asks until there is nothing new: the newest revision, the requests it took, the bytes."""
        requests, received = 0, 0
        while True:
            outcome = self.run([[request('watcher', head, accepts_gzip=accepts_gzip)]])
            if outcome.revision <= head[0]:
                return head, requests, received
            head = (outcome.revision, outcome.lineage)
            requests += 1
            received += outcome.received

    def pushes(self, devices, sets, records, name):
        """Requests of devices that are up to date; each has `sets` change sets for it."""
        lists = []
        for device in range(devices):
            client = f'{name}-{device}'
            begun = self.sequences.get(client, 0)
            self.sequences[client] = begun + sets
            lists.append([
                request(client, self.head, types('players', (begun + index + 1) * 1_000, [
                    text for _, text in self.organisation.more(self.name, records)]),
                    begun + index + 1)
                for index in range(sets)])
        return lists

    def prepare(self):
        """All records that are there before anything is measured: ten to a change set, which is
        enough of them for the server to make a snapshot by itself."""
        teams = [f'{{"name":"Team {number}"}}' for number in range(1, TEAMS + 1)]
        self.advance([[request('founder', self.head, types('teams', 1, teams), 1)]], 1)
        texts = self.organisation.players
        sets = [texts[first:first + 10] for first in range(0, len(texts), 10)]
        devices = 10 if len(sets) % 10 == 0 else 1
        each = len(sets) // devices
        self.advance([
            [request(f'loader-{device}', self.head, types('players', 1 + index * 10,
                                                          sets[device * each + index]), index + 1)
             for index in range(each)]
            for device in range(devices)], len(sets))

    # What is measured: each returns cases as (name, unit, value)

    def initial(self):
        cases = []
        for form, gzip in (('plain', False), ('gzip', True)):
            if gzip not in self.slices:
                _, count, _ = self.walk((0, None), gzip)
                self.slices[gzip] = count
            following = request('reader', (0, '-' * LINEAGE_WIDTH), accepts_gzip=gzip)
            first = request('reader', (0, None), accepts_gzip=gzip)
            outcome = self.run([[first] + [following] * (self.slices[gzip] - 1)])
            if outcome.revision != self.head[0]:
                raise Failure(f'{self.name}: a fresh device did not get everything')
            name = 'on the wire' if form == 'plain' else 'on the wire, gzip'
            cases += [
                (name, 's', outcome.seconds), (f'{name}: server CPU', 's', outcome.servers),
                (f'{name}: received', 'MB', outcome.received / 1e6)]
            if self.databases:
                cases.append((f'{name}: databases’ CPU', 's', outcome.databases))
        return cases + self.store()

    def store(self):
        path = os.path.join(self.folder, 'device.sqlite')
        meter = load.Meter(self.servers, self.below)
        self.client('init', path, '--server', f'http://127.0.0.1:{self.port}')
        servers, databases, seconds = meter.read()
        with sqlite3.connect(path) as device:
            count, = device.execute('SELECT count(*) FROM players').fetchone()
        device.close()
        if count < self.organisation.count:
            raise Failure(f'{self.name}: the device has {count} players')
        self.remove(path)
        cases = [('to a usable store', 's', seconds), ('to a usable store: server CPU', 's', servers)]
        if self.databases:
            cases.append(('to a usable store: databases’ CPU', 's', databases))
        return cases

    def counted(self, group):
        """Bytes that its own client receives; not timed."""
        relay = Relay(self.port)
        path = os.path.join(self.folder, 'counted.sqlite')
        self.client('init', path, '--server', f'http://127.0.0.1:{relay.port}')
        cases = []
        if group == 'initial':
            cases.append(('to a usable store: received', 'MB', relay.received / 1e6))
        for count in load.DISTANCES.get(group, ()):
            if count:
                self.write(count)
            before = relay.received
            self.client('sync', path, '--server', f'http://127.0.0.1:{relay.port}')
            name = f'{count:,} behind, own client' if count else 'own client'
            cases.append((f'{name}: received', 'B', relay.received - before))
        relay.close()
        self.remove(path)
        return cases

    def remove(self, path):
        for ending in ('', '-wal', '-shm'):
            if os.path.exists(path + ending):
                os.remove(path + ending)
        shutil.rmtree(path + '-snapshot', ignore_errors=True)

    def client(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments, '--json'], capture_output=True, text=True,
            env={**os.environ, 'MARTLET_TOKEN': TOKEN})
        if done.returncode != 0:
            raise Failure(f'martlet {arguments[0]}: {done.stderr or done.stdout}')

    def push(self):
        cases = []
        for devices, each in PUSHES:
            sets = devices * each
            outcome = self.advance(self.pushes(devices, each, 1, f'one-of-{devices}'), sets)
            cases += pushed(outcome, devices, sets, bool(self.databases))
        return cases

    def write(self, count):
        """Single change sets of others."""
        devices = min(DEVICES, count)
        self.advance(self.pushes(devices, count // devices, 1, 'writer'), count)

    def behind(self):
        if self.head[0] < 10_000 + self.organisation.count // 10:
            self.write(10_000)
        cases = []
        for count, requests in ((1, 200), (100, 100), (10_000, 5)):
            since = (self.head[0] - count, None)
            for gzip in (False, True):
                pull = request('reader', since, accepts_gzip=gzip, follows=False)
                outcome = self.run([[pull] * requests])
                name = f'{count:,} behind' + (', gzip' if gzip else '')
                cases += answered(name, outcome, requests, bool(self.databases))
        path = os.path.join(self.folder, 'behind.sqlite')
        self.client('init', path, '--server', f'http://127.0.0.1:{self.port}')
        for count in (1, 100, 10_000):
            self.write(count)
            cases.append((f'{count:,} behind, own client', 'ms', self.sync(path)))
        self.remove(path)
        return cases

    def sync(self, path):
        began = time.monotonic()
        self.client('sync', path)
        return (time.monotonic() - began) * 1_000

    def idle(self):
        cases = []
        for connections, each in ((1, 2_000), (50, 200)):
            pull = request('reader', self.head, follows=False)
            outcome = self.run([[pull] * each] * connections)
            cases += polled(connections, each, outcome, bool(self.databases))
        path = os.path.join(self.folder, 'idle.sqlite')
        if not os.path.exists(path):
            self.client('init', path, '--server', f'http://127.0.0.1:{self.port}')
        self.sync(path)
        times = sorted(self.sync(path) for _ in range(5))
        return cases + [('own client, a process each time', 'ms', times[2])]


def pushed(outcome, devices, sets, has_databases):
    """The cases of a push."""
    accepted = sets - outcome.failures
    if not accepted:
        raise Failure(f'all {sets} sets were refused, the first with {outcome.status}')
    cases = [
        ('rate', 'sets/s', accepted / outcome.seconds),
        ('median latency', 'ms', outcome.latency(0.5) * 1_000),
        ('99th percentile latency', 'ms', outcome.latency(0.99) * 1_000),
        ('server CPU', 'ms/set', outcome.servers / accepted * 1_000),
        ('load CPU', 'ms/set', outcome.own / accepted * 1_000),
        ('received', 'B/set', outcome.received / accepted),
        ('refused', '%', outcome.failures / sets * 100)]
    if has_databases:
        cases.append(('databases’ CPU', 'ms/set', outcome.databases / accepted * 1_000))
    return [(f'{crowd(devices)}: {name}', unit, value) for name, unit, value in cases]


def crowd(devices):
    return f'{devices} devices' if devices > 1 else 'one device'


def answered(name, outcome, requests, has_databases):
    """The cases of answers to one who is behind."""
    cases = [
        (name, 'ms', outcome.latency(0.5) * 1_000),
        (f'{name}: server CPU', 'ms', outcome.servers / requests * 1_000),
        (f'{name}: received', 'B', outcome.received / requests)]
    if has_databases:
        cases.append((f'{name}: databases’ CPU', 'ms', outcome.databases / requests * 1_000))
    return cases


def polled(connections, each, outcome, has_databases):
    """The cases of asking when there is nothing."""
    count = connections * each
    if connections > 1:
        cases = [
            (f'{connections} at once: rate', 'syncs/s', count / outcome.seconds),
            (f'{connections} at once: 99th percentile', 'ms', outcome.latency(0.99) * 1_000)]
    else:
        cases = [('median latency', 'ms', outcome.latency(0.5) * 1_000),
                 ('received', 'B', outcome.received / count)]
    prefix = f'{connections} at once: ' if connections > 1 else ''
    cases.append((f'{prefix}server CPU', 'ms', outcome.servers / count * 1_000))
    if has_databases:
        cases.append((f'{prefix}databases’ CPU', 'ms', outcome.databases / count * 1_000))
    return cases

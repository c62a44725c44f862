"""Kinto on PostgreSQL and Redis, behind gunicorn."""
import base64
import http.client
import os
import sqlite3
import subprocess
import sys

import orjson

import load
from machine import Child, Failure, free_port, listens, until
from martlet_peer import DEVICES, answered, polled, pushed
from organisation import COLUMNS, SCHEMA

PARENT = '/buckets/league/collections/players'
PATH = f'/v1{PARENT}/records'
AUTHORIZATION = 'Basic ' + base64.b64encode(b'bench:bench').decode()
HEADERS = f'Authorization: {AUTHORIZATION}\r\n'
PUSHES = ((DEVICES, 20), (1, 100))  # connections, and the requests of each
PAGE = 10_000  # the most Kinto gives at once

SETTINGS = '''
[app:main]
use = egg:kinto
kinto.storage_backend = kinto.core.storage.postgresql
kinto.storage_url = {database}
kinto.permission_backend = kinto.core.permission.postgresql
kinto.permission_url = {database}
kinto.cache_backend = kinto.core.cache.redis
kinto.cache_url = {redis}/1
kinto.userid_hmac_secret = bench
multiauth.policies = basicauth
kinto.bucket_create_principals = system.Authenticated

[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = generic
[logger_root]
level = CRITICAL
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
level = NOTSET
formatter = generic
[formatter_generic]
format = %(message)s
'''


class Kinto:
    name = 'Kinto'

    def __init__(self, folder, organisation, databases):
        self.folder, self.organisation, self.databases = folder, organisation, databases
        self.pages = []
        os.mkdir(folder)
        self.start()

    # The server

    def start(self):
        settings = os.path.join(self.folder, 'kinto.ini')
        with open(settings, 'w') as file:
            file.write(SETTINGS.format(
                database=self.databases.create('kinto_peer'), redis=self.databases.redis))
        programs = os.path.dirname(sys.executable)
        subprocess.run(
            [os.path.join(programs, 'kinto'), 'migrate', '--ini', settings], check=True,
            capture_output=True)
        self.port = free_port()
        self.child = Child(
            [os.path.join(programs, 'gunicorn'), '--paste', settings, '--bind',
             f'127.0.0.1:{self.port}', '--worker-class', 'gthread', '--workers', '2', '--threads',
             '32', '--keep-alive', '75', '--timeout', '300'], os.path.join(self.folder, 'log'))
        until(lambda: listens(self.port), self.child.process, self.name)
        for path in ('/v1/buckets/league', '/v1' + PARENT):
            self.ask('PUT', path, b'{}')

    def stop(self):
        self.child.stop()

    @property
    def servers(self):
        return [self.child.process.pid]

    def run(self, lists, **more):
        return load.run(self.port, lists, self.servers, self.databases.processes, **more)

    def ask(self, method, path, body=None):
        """One request from here, for what is not measured: the answer's headers."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.request(method, path, body, {
            'Authorization': AUTHORIZATION, 'Content-Type': 'application/json'})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status >= 400:
            raise Failure(f'Kinto: {method} {path}: {answer.status}')
        return answer.headers

    def prepare(self):
        """The records that are there before anything is measured go into Kinto's table, whose
        triggers give them their times: through its API that takes longer than all that is measured."""
        with self.databases.connect('kinto_peer').cursor() as cursor:
            for first in range(0, self.organisation.count, 1_000):
                rows = self.organisation.players[first:first + 1_000]
                tuples, values = [], []
                for number, text in enumerate(rows, first + 1):
                    tuples.append("(%s, %s, 'record', %s::jsonb, false)")
                    values += [str(number), PARENT, text]
                cursor.execute(
                    'INSERT INTO objects (id, parent_id, resource_name, data, deleted) VALUES '
                    + ','.join(tuples), values)
        self.databases.analyse('kinto_peer')

    # What is measured

    def initial(self):
        if not self.pages:
            path = f'{PATH}?_limit={PAGE}'
            while path:
                self.pages.append(path)
                following = self.ask('GET', path).get('Next-Page')
                path = following and '/v1' + following.split('/v1', 1)[1]
        requests = [load.Request('GET', path, HEADERS) for path in self.pages]
        outcome = self.run([requests])
        cases = [
            ('on the wire', 's', outcome.seconds),
            ('on the wire: server CPU', 's', outcome.servers),
            ('on the wire: databases’ CPU', 's', outcome.databases),
            ('on the wire: received', 'MB', outcome.received / 1e6)]
        return cases + self.store()

    def store(self):
        """A client in the language of Kinto's own, with the fastest JSON there: the same tables and
        the same durability as a Martlet device."""
        path = os.path.join(self.folder, 'device.sqlite')
        insert = f'INSERT INTO players (id, {", ".join(COLUMNS)}) VALUES (?{", ?" * len(COLUMNS)})'
        meter = load.Meter(self.servers, self.databases.processes)
        device = sqlite3.connect(path, isolation_level=None)
        device.executescript(
            'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;'
            + SCHEMA + 'BEGIN')
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        following = f'{PATH}?_limit={PAGE}'
        while following:
            connection.request('GET', following, headers={'Authorization': AUTHORIZATION})
            answer = connection.getresponse()
            records = orjson.loads(answer.read())['data']
            device.executemany(insert, (
                (int(record['id']), *(record[column] for column in COLUMNS))
                for record in records))
            following = answer.headers.get('Next-Page')
            following = following and '/v1' + following.split('/v1', 1)[1]
        device.execute('COMMIT')
        count, = device.execute('SELECT count(*) FROM players').fetchone()
        device.close()
        connection.close()
        servers, databases, seconds = meter.read()
        for ending in ('', '-wal', '-shm'):
            if os.path.exists(path + ending):
                os.remove(path + ending)
        if count < self.organisation.count:
            raise Failure(f'Kinto: the device has {count} players')
        return [('to a usable store', 's', seconds), ('to a usable store: server CPU', 's', servers),
                ('to a usable store: databases’ CPU', 's', databases)]

    def counted(self, group):
        """What its client receives is what travels on the wire: there is none with a store."""
        return []

    def push(self):
        cases = []
        for devices, each in PUSHES:
            lists = [[
                load.Request(
                    'PUT', f'{PATH}/{number}', HEADERS + 'If-None-Match: *\r\n',
                    f'{{"data":{text}}}'.encode())
                for number, text in self.organisation.more(self.name, each)]
                for _ in range(devices)]
            outcome = self.run(lists, status=201, may_fail=True)
            cases += pushed(outcome, devices, devices * each, True)
        return cases

    def behind(self):
        cases = []
        for count, requests in ((1, 50), (100, 20), (10_000, 2)):
            with self.databases.connect('kinto_peer').cursor() as cursor:
                cursor.execute(
                    'SELECT as_epoch(last_modified) FROM objects WHERE parent_id = %s AND '
                    "resource_name = 'record' ORDER BY last_modified DESC OFFSET %s LIMIT 1",
                    (PARENT, count))
                since, = cursor.fetchone()
            pull = load.Request('GET', f'{PATH}?_since=%22{since}%22&_limit={PAGE}', HEADERS)
            outcome = self.run([[pull] * requests])
            cases += answered(f'{count:,} behind', outcome, requests, True)
        return cases

    def idle(self):
        cases = []
        known = self.ask('HEAD', PATH)['ETag']
        pull = load.Request('GET', PATH, f'{HEADERS}If-None-Match: {known}\r\n')
        for connections, each in ((1, 100), (50, 20)):
            outcome = self.run([[pull] * each] * connections, status=304)
            cases += polled(connections, each, outcome, True)
        return cases

"""A running server with many data sets, which is disturbed at random, for scripts/operators --disturbed.

Each disturbance is what happens to servers: signals of a terminal that is gone, a log that nobody reads or
that cannot be written, files and folders that are taken away, replaced or damaged, a program that keeps the
lock, connections without end and few descriptors, imports, older content. After each, the process is there,
what is sound is served, its memory is bounded, /readyz says no while nothing can be written, and once the
cause is gone everything is well without a person.
"""
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import traceback

from world import Failure, Server, Tools, World, wait_for

MEBIBYTE = 1 << 20


class Served:
    """The server of one trial, and what a member asks of it."""

    def __init__(self, world, random):
        self.world, self.random = world, random
        self.names = [f'club{number}' for number in range(random.choice([3, 12, 40]))]
        # Few descriptors matter only if there are many data sets.
        self.files = random.choice([None, 1000, 1000]) if len(self.names) == 40 else random.choice([None, 600])
        self.log = random.choice(['read', 'read', 'unread', 'full', 'gone'])
        self.words = ['--snapshot-every', random.choice(['3', '10000'])]
        if random.random() < 0.5:
            self.words += ['--log', 'debug']
        self.damaged = None
        self.count = 0
        self.marks, self.reached = {}, {}
        self.process = None

    def __str__(self):
        return (f'{len(self.names)} data sets, {self.files or "many"} files, the log is {self.log}, '
                f'{" ".join(self.words)}')

    # Its life.

    def start(self):
        arguments = ['--data', self.world.path('data'), '--schema', self.world.path('schema.sql'), '--port', '0']
        for name in self.names:
            arguments += ['--token', f'{name}:secret-{name}']
        error = {'read': self.world.path('log'), 'full': '/dev/full'}.get(self.log)
        self.pipe = None
        if error:
            target = open(error, 'ab')
        else:
            self.pipe, end = os.pipe()
            target = os.fdopen(end, 'wb')
            if self.log == 'gone':
                os.close(self.pipe)
                self.pipe = None
        self.server = Server.__new__(Server)
        self.server.words = ['serve', *map(str, arguments + self.words)]
        limit = f'ulimit -n {self.files}; ' if self.files else ''
        with target:
            self.server.process = subprocess.Popen(
                ['bash', '-c', limit + 'exec "$@"', 'bash', Tools.martlet, *self.server.words],
                env=Tools.environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=target, errors='replace')
        self.process = self.server.process
        self.server.address, self.server.said = None, ''
        if not self.server.listen():
            raise Failure(f'it does not start: {self.server.ended}')
        self.port = int(self.server.address.rsplit(':', 1)[1])

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(timeout=60)
        except Exception:
            process.kill()
            process.wait()
            raise Failure('it does not stop on SIGTERM')
        finally:
            process.stdout.close()
            if self.pipe is not None:
                os.close(self.pipe)
        if code != 0:
            raise Failure(f'it ended with {code}: {self.last()}')

    def last(self):
        if self.log != 'read':
            return 'no log'
        with open(self.world.path('log'), errors='replace') as file:
            return file.read()[-2000:]

    def said(self, words):
        """Whether the log has these words; True if nobody can read it."""
        if self.log != 'read':
            return True
        with open(self.world.path('log'), errors='replace') as file:
            return words in file.read()

    # What it is asked.

    def ask(self, method, path, name=None, body=None, token=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        headers = {}
        if name or token:
            headers['Authorization'] = f'Bearer {token or "secret-" + name}'
        if body is not None:
            headers['Content-Type'] = 'application/json'
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error).encode()
        finally:
            connection.close()

    def pull(self, name, since=0):
        status, body = self.ask('POST', '/sync', name, json.dumps({'maxRevision': since, 'changeSets': []}))
        return status, json.loads(body) if status == 200 else body

    def save(self, name, text='', count=1):
        """One set with notes, which are marks; its revision, or None if it was not taken for now."""
        self.count += 1
        identifier = f's{self.count}'
        first = self.count * 1000
        marks = {str(-first - index): {'mark': f'{name} {self.count} {index} {text}'} for index in range(count)}
        status, answer = self.ask('POST', '/sync', name, json.dumps({
            'clientId': f'writer-{name}', 'maxRevision': self.reached.get(name, 0), 'changeSets': [{
                'identifier': identifier, 'sequence': self.count, 'seen': 0, 'types': ['notes'],
                'notes': {'create': [int(key) for key in marks], 'update': [], 'delete': [],
                          'attributes': marks}}]}))
        if status != 200:
            return None
        answer = json.loads(answer)
        self.reached[name] = answer['maxRevision']
        own = [one for one in answer['changeSets'] if one.get('identifier') == identifier]
        if not own or own[0].get('conflict'):
            raise Failure(f'a set was refused: {str(own[:1])[:500]}')
        self.marks.setdefault(name, []).extend(one['mark'] for one in marks.values())
        return own[0]['revision']

    def memory(self):
        with open(f'/proc/{self.process.pid}/status') as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith('VmRSS:'))

    def switches(self):
        """How often its threads have waited for something."""
        count = 0
        for task in os.listdir(f'/proc/{self.process.pid}/task'):
            with contextlib.suppress(OSError), open(f'/proc/{self.process.pid}/task/{task}/status') as file:
                count += sum(int(line.split()[1]) for line in file if line.startswith('voluntary_ctxt'))
        return count

    def is_ready(self):
        return self.ask('GET', '/readyz')[0] == 200

    # What must hold at any time.

    def check(self, but=()):
        if self.process.poll() is not None:
            raise Failure(f'it ended with {self.process.returncode}: {self.last()}')
        for name in self.random.sample(self.names, min(6, len(self.names))):
            if name == self.damaged or name in but:
                continue
            for attempt in range(40):
                if self.save(name) is not None:
                    break
                time.sleep(0.25)
            else:
                raise Failure(f'{name} takes no set: {self.ask("GET", "/readyz")} {self.last()}')
        if self.damaged:
            status, answer = self.pull(self.damaged)
            if status < 500:
                raise Failure(f'a damaged data set answers {status}')

    def account(self):
        """At the end all marks are there once."""
        for name, marks in self.marks.items():
            if name == self.damaged:
                continue
            connection = sqlite3.connect(self.world.path(f'data/{name}.sqlite'), timeout=20)
            found = [row[0] for row in connection.execute('SELECT mark FROM notes')]
            connection.close()
            counts = collections.Counter(found)
            missing = [mark for mark in marks if counts[mark] != 1]
            if missing:
                raise Failure(f'marks of {name} are lost or doubled: {[mark[:30] for mark in missing[:3]]}')


# What happens to it. Each returns in words what was done.

def hang_up(served):
    number = served.random.choice([signal.SIGHUP, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE])
    served.process.send_signal(number)
    return signal.Signals(number).name


def talk(served):
    """Requests of which each makes a line in the log: more than a pipe or the server's memory holds."""
    before = served.memory()
    count = 150_000 if served.log == 'unread' else 3_000
    request = b'GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n'

    def speak(one):
        for _ in range(count // 3 // 1000):
            one.sendall(request * 1000)
    answers = 0
    for _ in range(3):
        with socket.create_connection(('127.0.0.1', served.port), timeout=60) as one:
            speaker = threading.Thread(target=speak, args=[one])
            speaker.start()
            rest, heard = b'', 0
            while heard < count // 3 and (piece := one.recv(1 << 20)):
                heard += (rest + piece).count(b'HTTP/1.1 404')
                rest = piece[-11:]
            speaker.join()
            answers += heard
    if answers < count:
        raise Failure(f'of {count} bad requests {answers} were answered')
    grown = served.memory() - before
    if grown > 20 * MEBIBYTE:
        raise Failure(f'{count} bad requests have made it {grown // MEBIBYTE} MiB larger')
    return f'{count} bad requests'


def snapshots_away(served):
    """The folder of a snapshot is removed; the next one that is asked for is whole."""
    name = served.random.choice([name for name in served.names if name != served.damaged])
    for _ in range(4):
        served.save(name, 'x' * 3_000, 700)
    wait_for('a first snapshot', lambda: served.ask('GET', '/snapshot', name)[0] == 200)
    # A second one may be on its way.
    time.sleep(1)
    folder = served.world.path(f'data/snapshots/{name}')
    way = served.random.choice(['all', 'inner', 'files'])
    if way == 'all':
        shutil.rmtree(served.world.path('data/snapshots'))
    elif way == 'inner':
        shutil.rmtree(folder)
    else:
        for path, _, files in os.walk(folder):
            for file in files:
                os.remove(os.path.join(path, file))

    def is_whole():
        status, body = served.ask('GET', '/snapshot', name)
        if status != 200:
            return False
        part = json.loads(body)['parts'][0]
        return served.ask('GET', f'/snapshot/{part["hash"]}', name)[0] == 200
    wait_for('a snapshot in place of the one that was removed', is_whole, 30)
    return f'the snapshots of {name} are removed: {way}'


def many_bytes(served):
    """An import: one revision, and a snapshot with it soon, if it is at least half as large as the newest one."""
    name = served.random.choice([name for name in served.names if name != served.damaged])
    size = served.random.choice([100, 7000, 14000])
    revision = None
    for _ in range(20):
        revision = served.save(name, 'x' * size, 700)
        if revision:
            break
        time.sleep(0.25)
    if revision is None:
        raise Failure(f'{name} does not take an import')
    if size < 7000:
        return f'a small import into {name}'

    def is_there():
        status, body = served.ask('GET', '/snapshot', name)
        if status != 200:
            return False
        newest = json.loads(body)
        return newest['revision'] >= revision or sum(part['bytes'] for part in newest['parts']) > 2 * 700 * size
    wait_for(f'a snapshot of {name} with an import of {700 * size >> 20} MiB', is_there, 30)
    return f'an import into {name}'


def locked(served):
    """A program keeps the lock of one data set. While nothing is written, /readyz says so."""
    name = served.random.choice([name for name in served.names if name != served.damaged])
    served.save(name)
    program = sqlite3.connect(served.world.path(f'data/{name}.sqlite'), timeout=20, isolation_level=None)
    program.execute('BEGIN IMMEDIATE')
    stop = threading.Event()

    def write():
        while not stop.is_set():
            served.ask('POST', '/sync', name, json.dumps({
                'clientId': 'locked-out', 'maxRevision': 0, 'changeSets': [{
                    'identifier': 'locked', 'sequence': 1, 'seen': 0, 'types': ['notes'],
                    'notes': {'create': [-1], 'update': [], 'delete': [],
                              'attributes': {'-1': {'mark': 'locked'}}}}]}))
            stop.wait(0.2)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for('/readyz says that nothing can be written', lambda: not served.is_ready(), 40)
        served.check(but=[name])
    finally:
        stop.set()
        program.execute('ROLLBACK')
        program.close()
        writer.join()
    return f'a program locks {name}'


def moved(served):
    """A data set's files are somewhere else for a while; devices lose nothing by it."""
    name = served.random.choice([name for name in served.names if name != served.damaged])
    served.save(name)
    path = served.world.path(f'data/{name}.sqlite')
    os.rename(path, path + '.away')
    try:
        wait_for('/readyz says that a file is gone', lambda: not served.is_ready(), 30)
        if served.save(name) is not None:
            raise Failure(f'{name} takes sets while its file is gone')
    finally:
        os.rename(path + '.away', path)
    return f'the file of {name} is away'


def went_back(served):
    """Another program puts an older content into a file; it is told of, and devices go on."""
    name = served.random.choice([name for name in served.names if name != served.damaged])
    served.save(name)
    old = served.world.path('old.sqlite')
    path = served.world.path(f'data/{name}.sqlite')
    with contextlib.closing(sqlite3.connect(path, timeout=20)) as live:
        with contextlib.closing(sqlite3.connect(old)) as copy:
            live.backup(copy)
    kept = list(served.marks[name])
    for _ in range(served.random.randint(1, 3)):
        served.save(name)
    # The data set is in use meanwhile.
    with contextlib.closing(sqlite3.connect(old)) as copy:
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as live:
            copy.backup(live)
    os.remove(old)
    served.marks[name], served.reached[name] = kept, 0
    wait_for('the log tells that it went back', lambda: served.said('The log went back'), 20)
    return f'{name} goes back'


def crowd(served):
    """All data sets are in use, and connections take what the server lets them."""
    for name in served.names:
        if name == served.damaged:
            continue
        served.pull(name)
        served.ask('GET', '/snapshot', name)
        served.save(name)
    held = []
    try:
        with contextlib.suppress(OSError):
            for _ in range(1200 if served.files else 300):
                held.append(socket.create_connection(('127.0.0.1', served.port), timeout=10))
        time.sleep(0.3)
        used = len(os.listdir(f'/proc/{served.process.pid}/fd'))
        if served.files and used > served.files - 30:
            raise Failure(f'{len(held)} connections leave it {served.files - used} of {served.files} files')
        names = [name for name in served.names if name != served.damaged]
        # Whoever is connected gets answers about each data set.
        answered, wrong = 0, None
        for one, name in zip(held, names):
            with contextlib.suppress(OSError):
                body = json.dumps({'maxRevision': 0, 'changeSets': []})
                one.settimeout(30)
                one.sendall(f'POST /sync HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret-{name}\r\n'
                            f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
                answer = one.recv(1000)
                answered += b'HTTP/1.1 200' in answer
                wrong = wrong if b'HTTP/1.1 200' in answer else (name, answer)
        if answered < min(len(names), len(held)):
            raise Failure(f'beside {len(held)} connections {answered} of {len(names)} data sets are served: {wrong}')
    finally:
        for one in held:
            one.close()
    return f'{len(held)} connections'


def quiet(served):
    """At rest it does next to nothing, however many data sets are open."""
    for name in served.names:
        served.pull(name)
    time.sleep(1.5)
    before = served.switches()
    time.sleep(3)
    count = served.switches() - before
    if count > 150 + 12 * len(served.names):
        raise Failure(f'{len(served.names)} data sets at rest have woken its threads {count} times in 3 s')
    return 'rest'


def damage(served):
    """While it is stopped one data set is damaged; all others are served afterwards."""
    served.stop()
    name = served.random.choice(served.names)
    if served.damaged is None:
        served.damaged = name
        path = served.world.path(f'data/{name}.sqlite')
        for ending in ('-wal', '-shm'):
            with contextlib.suppress(OSError):
                os.remove(path + ending)
        size = os.path.getsize(path) if os.path.exists(path) else 0
        way = served.random.choice(['garbage', 'head', 'cut', 'folder', 'foreign'])
        if way in ('garbage', 'head') or size < 8192:
            with open(path, 'r+b' if size else 'wb') as file:
                file.write(served.random.randbytes(size or 5000) if way == 'garbage' else b'no database at all')
        elif way == 'cut':
            os.truncate(path, 5000)
        elif way == 'folder':
            os.remove(path)
            os.mkdir(path)
        else:
            os.remove(path)
            with contextlib.closing(sqlite3.connect(path)) as other:
                other.execute('CREATE TABLE notes(id TEXT, x INTEGER, PRIMARY KEY(id, x))')
    served.start()
    return f'{served.damaged} is damaged'


def killed(served):
    served.process.kill()
    served.process.wait()
    served.process.stdout.close()
    if served.pipe is not None:
        os.close(served.pipe)
    served.start()
    return 'killed'


DISTURBANCES = [hang_up, talk, snapshots_away, many_bytes, locked, moved, went_back, crowd, quiet, damage, killed]


def trial(seed, number, folder):
    """Disturbs one server; tells what was done to it."""
    chance = random.Random(f'{seed}/disturbed/{number}')
    os.makedirs(folder)
    world = World(folder, chance)
    world.write('schema.sql', 'CREATE TABLE notes (id INTEGER PRIMARY KEY, mark TEXT NOT NULL);')
    served = Served(world, chance)
    story = [str(served)]
    # Each trial in turn has one of them at least, so that few trials have all.
    deeds = [DISTURBANCES[(number + seed) % len(DISTURBANCES)]]
    deeds += chance.sample(DISTURBANCES, chance.randint(2, 4))
    chance.shuffle(deeds)
    try:
        served.start()
        served.check()
        for deed in deeds:
            story.append(deed.__name__)
            story[-1] = deed(served)
            served.check()
            wait_for('/readyz says that all is well', lambda: served.damaged or served.is_ready(), 30)
        if served.memory() > 500 * MEBIBYTE:
            raise Failure(f'it holds {served.memory() // MEBIBYTE} MiB')
        served.stop()
        served.account()
    except Exception as failure:
        kind = '' if isinstance(failure, Failure) else traceback.format_exc()
        raise Failure(f'{"; ".join(story)}: {kind}{failure}') from failure
    finally:
        if served.process is not None and served.process.poll() is None:
            served.process.kill()
            served.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    return '; '.join(story)


def main(seed, trials, work, jobs, only=None):
    failures = []

    def one(number):
        try:
            return f'disturbed {number}: {trial(seed, number, os.path.join(work, str(number)))}'
        except Failure as failure:
            failures.append(number)
            return (f'operators: disturbed {number}, seed {seed}: {failure}\n'
                    f'  again: scripts/operators --disturbed --seed {seed} --trial {number}')
    numbers = range(trials) if only is None else [only]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for line in pool.map(one, numbers):
            print(line, flush=True)
    print(f'{len(numbers)} disturbed servers, seed {seed}, {len(failures)} failures')
    return 1 if failures else 0

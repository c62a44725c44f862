"""A data set with its server's folder and devices, made at random from a seed, for scripts/operators.

A note is saved once and never changed: its text is a mark, and no mark may ever be lost or doubled.
Teams and players are changed at random by everybody.
"""
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

SCHEMA = """
CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, weight REAL);
CREATE TABLE players (
    id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE SET NULL,
    name TEXT NOT NULL, photo BLOB);
CREATE TABLE notes (id INTEGER PRIMARY KEY, mark TEXT NOT NULL);
"""
TABLES = ('teams', 'players', 'notes')
# Words that are made for programmers, in what a person is told.
MACHINE_WORDS = re.compile(
    r'Error Domain|NSCocoa|\b[A-Z]\w+Error\(|Fatal error|Optional\(|couldn.t be completed|Swift\.|PANIC')


class Failure(Exception):
    """What a command or a world did that it must not."""


class Run:
    """What a command said, and how it ended."""

    def __init__(self, words, code, out, err):
        self.words, self.code, self.out, self.err = words, code, out, err

    def __str__(self):
        return f"martlet {' '.join(self.words)}: {self.code}\n{self.out[-1500:]}{self.err[-1500:]}"

    def need(self, *codes):
        """Fails unless the command ended with one of the codes, and said why if that is not 0."""
        if self.code not in codes:
            raise Failure(f'it should end with {codes}: {self}')
        if self.code == 1 and not (self.err + self.out).strip():
            raise Failure(f'it says nothing: {self}')
        if MACHINE_WORDS.search(self.err) or MACHINE_WORDS.search(self.out):
            raise Failure(f'it has words for machines: {self}')
        return self


class Tools:
    """The command, the library with the faults, and what both are called with."""
    martlet = ''
    faults = ''
    patience = 120

    @classmethod
    def environment(cls, fault=None, log=None, **more):
        # scripts/mutants says by one variable what is changed.
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith('MARTLET_') or name == 'MARTLET_MUTANT'}
        if fault:
            kept.update(LD_PRELOAD=cls.faults, MARTLET_FAULT=fault)
            if log:
                kept['MARTLET_FAULT_LOG'] = log
        return {**kept, **more}

    @classmethod
    def start(cls, words, fault=None, log=None, error=subprocess.PIPE, user=None, **more):
        return subprocess.Popen(
            [cls.martlet, *words], env=cls.environment(fault, log, **more), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=error, errors='replace',
            user=user, group=user, extra_groups=None if user is None else [])

    @classmethod
    def finish(cls, process, words):
        try:
            out, err = process.communicate(timeout=cls.patience)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise Failure(f'it does not end: {Run(words, None, out, err)}')
        return Run(words, process.returncode, out, err or '')

    @classmethod
    def run(cls, *words, **more):
        words = [str(word) for word in words]
        return cls.finish(cls.start(words, **more), words)


class Server:
    """`martlet serve` on a free port, while this is open."""

    def __init__(self, *words, **more):
        self.words = ['serve', *map(str, words), '--port', '0', '--log', 'warning']
        self.process = Tools.start(self.words, error=subprocess.STDOUT, **more)
        self.address = None
        self.said = ''

    def __enter__(self):
        if not self.listen():
            raise Failure(f'the server does not start: {self.ended}')
        return self

    def listen(self):
        """Waits until it listens; False if it ended instead (`ended`)."""
        if self.address:
            return True
        for line in self.process.stdout:
            self.said += line
            if line.startswith('listening on '):
                self.address = line.split()[-1]
                return True
        self.finish()
        return False

    def finish(self):
        run = Tools.finish(self.process, self.words)
        self.ended = Run(self.words, run.code, '', self.said + run.out)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.finish()


def copy_with_owner(source, target):
    shutil.copy2(source, target, follow_symlinks=False)
    keep_owner(source, target)


def keep_owner(source, target):
    facts = os.stat(source)
    if os.geteuid() == 0:
        os.chown(target, facts.st_uid, facts.st_gid)


def rows(connection):
    return {table: sorted(connection.execute(f'SELECT * FROM {table}').fetchall(), key=repr)
            for table in TABLES}


def tables(path):
    """The tables of a file, as a program sees them that only reads it."""
    connection = sqlite3.connect(path, timeout=20)
    try:
        found = connection.execute('PRAGMA integrity_check').fetchall()
        if found != [('ok',)]:
            raise Failure(f'{path} is damaged: {found[:3]}')
        return rows(connection)
    finally:
        connection.close()


class World:
    """A folder with `data` (the server's), device files, and what was saved with them."""

    def __init__(self, folder, random):
        self.folder, self.random = folder, random
        self.marks = {}
        self.devices = []
        self.count = 0
        self.origin = None
        # Whether the command was killed before or after a change of names.
        self.is_between_names = False

    def path(self, name):
        return os.path.join(self.folder, name)

    def given(self, path):
        """Whether a file was there when the world was copied."""
        return os.path.exists(path.replace(self.folder, self.origin)) if self.origin else False

    def copy(self, folder, random):
        """The same world in another folder; nothing of it is running."""
        shutil.copytree(
            self.folder, folder, symlinks=True, dirs_exist_ok=True, copy_function=copy_with_owner)
        for name in os.listdir(self.folder):
            if os.path.isdir(self.path(name)):
                keep_owner(self.path(name), os.path.join(folder, name))
        other = World(folder, random)
        other.origin = self.folder
        other.marks = {device: list(marks) for device, marks in self.marks.items()}
        other.devices, other.count = list(self.devices), self.count
        return other

    def write(self, name, text):
        with open(self.path(name), 'w') as file:
            file.write(text)
        return self.path(name)

    # What devices do.

    def join(self, name, server, user=None):
        """Makes a token and a device file that has the data set."""
        run = Tools.run(*self.token_words('create', 'team', '--user', user or name)).need(0)
        self.write(f'{name}.token', run.out.split()[0] + '\n')
        Tools.run('init', self.path(f'{name}.sqlite'), '--server', server.address,
                  '--token-file', self.path(f'{name}.token')).need(0)
        self.devices.append(name)
        self.marks[name] = []

    def token_words(self, verb, *words):
        return ['token', verb, *words, '--data', self.path('data')]

    def save(self, name, count=None):
        """Lets another program write to a device's file: notes in one change set, all else in another."""
        random = self.random
        kinds = [random.randrange(8) for _ in range(count or random.randint(1, 6))]
        for part in ([kind for kind in kinds if kind < 2], [kind for kind in kinds if kind >= 2]):
            if part:
                self.write_rows(name, part)
                # Closes the change set.
                Tools.run('status', self.path(f'{name}.sqlite')).need(0, 3)

    def write_rows(self, name, kinds):
        random = self.random
        connection = sqlite3.connect(self.path(f'{name}.sqlite'), timeout=20, isolation_level=None)
        connection.execute('PRAGMA foreign_keys = ON')

        def some(table):
            row = connection.execute(f'SELECT id FROM {table} ORDER BY random() LIMIT 1').fetchone()
            return row[0] if row else None

        for kind in kinds:
            self.count += 1
            text = f'{name} {self.count} ' + random.choice(['', 'é“”', "o'neil", 'x' * 3000, '\n'])
            if kind < 2:
                connection.execute('INSERT INTO notes SELECT id, ? FROM martlet_new_id', [text])
                self.marks[name].append(text)
            elif kind < 4:
                connection.execute(
                    'INSERT INTO teams (id, name, city, weight) SELECT id, ?, ?, ? FROM martlet_new_id',
                    [text, random.choice([None, 'Bath']), random.choice([None, 0.5, 1e300])])
            elif kind < 6:
                connection.execute(
                    'INSERT INTO players SELECT id, ?, ?, ? FROM martlet_new_id',
                    [some('teams'), text, random.choice([None, random.randbytes(50)])])
            elif kind == 6:
                connection.execute('UPDATE teams SET name = ? WHERE id = ?', [text, some('teams')])
            else:
                connection.execute('DELETE FROM teams WHERE id = ?', [some('teams')])
        connection.close()

    def sync(self, name, server, *codes):
        return Tools.run('sync', self.path(f'{name}.sqlite'), '--server', server.address,
                         '--token-file', self.path(f'{name}.token')).need(*(codes or (0, 3)))

    def tables(self, name):
        return tables(self.path(f'{name}.sqlite'))

    def converge(self, server, truth=None, devices=None, lost=()):
        """All devices exchange until they are equal to the server, and no mark is lost or doubled.

        `truth` gives the server's tables; `lost` are marks that may be gone.
        """
        devices = self.devices if devices is None else devices
        for _ in range(3):
            for name in devices:
                self.sync(name, server)
        truth = (truth or (lambda: tables(self.path('data/team.sqlite'))))()
        for name in devices:
            if self.tables(name) != truth:
                raise Failure(f'device {name} differs: {differences(self.tables(name), truth)}')
        self.account(truth, devices, lost)

    def account(self, truth, devices=None, lost=()):
        found = sorted(mark for _, mark in truth['notes'])
        if len(set(found)) != len(found):
            raise Failure(f'marks are there twice: {[m[:20] for m in found if found.count(m) > 1]}')
        for name in devices or self.devices:
            missing = [mark for mark in self.marks[name] if mark not in found and mark not in lost]
            if missing:
                raise Failure(f'marks of {name} are lost: {[mark[:20] for mark in missing]}')


def differences(found, wanted):
    return {table: ([row for row in found[table] if row not in wanted[table]][:3],
                    [row for row in wanted[table] if row not in found[table]][:3])
            for table in TABLES if found[table] != wanted[table]}


def wait_for(what, test, patience=60):
    limit = time.monotonic() + patience
    while not test():
        if time.monotonic() > limit:
            raise Failure(f'waited too long: {what}')
        time.sleep(0.02)

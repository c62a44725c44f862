"""What each command of an operator is tried with: a world, its words, and what must hold after it."""
import glob
import os
import shutil
import sqlite3
import urllib.error
import urllib.request

from world import SCHEMA, Failure, Server, Tools, differences, tables

OWNER = 65534


class Scenario:
    """One command. A subclass says how its world is made and what is true afterwards."""

    name = ''
    # The program whose operations are counted.
    program = 'martlet'
    # Files that the command makes if they are away, and that are of use then.
    makes = ()

    # What subclasses say.

    def prepare(self, world):
        """Makes the world once; each trial gets a copy."""

    def begin(self, world):
        """Called in each trial, before the command. Returns a context that lasts for the trial."""
        return Nothing()

    def words(self, world):
        raise NotImplementedError

    def between(self, world):
        """What must hold whenever the command has ended in whatever way."""

    def again(self, world):
        """Runs the command again, and does what it says."""
        Tools.run(*self.words(world)).need(0)

    def final(self, world):
        """What must hold after that."""

    def watched(self, world):
        """The folder of which the log of operations tells."""
        return world.folder

    # What main calls.

    def execute(self, world, **more):
        return Tools.run(*self.words(world), **more)

    def twice(self, world):
        """The command two times at once."""
        both = [[str(word) for word in self.words(world)] for _ in range(2)]
        started = [Tools.start(words) for words in both]
        return [Tools.finish(process, words) for process, words in zip(started, both)]


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class DataFolder(Scenario):
    """A command on a data set in a file, which no server has open."""

    def prepare(self, world):
        self.make(world)
        self.own(world)

    def make(self, world, then=lambda world, server: None):
        world.write('schema.sql', SCHEMA)
        os.mkdir(world.path('data'))
        with self.serve(world) as server:
            for name in ('ada', 'bo'):
                world.join(name, server)
            for _ in range(world.random.randint(2, 5)):
                for name in world.devices:
                    world.save(name)
                    if world.random.random() < 0.7:
                        world.sync(name, server)
            world.sync('ada', server)
            then(world, server)

    def own(self, world):
        """Gives the folder to the user that a server would run as, if we may."""
        if os.geteuid() == 0:
            for folder, _, files in os.walk(world.path('data')):
                for path in [folder] + [os.path.join(folder, file) for file in files]:
                    os.chown(path, OWNER, OWNER)

    def serve(self, world, **more):
        return Server('--data', world.path('data'), '--schema', world.path('schema.sql'), **more)

    def location(self, world):
        return ['--data', world.path('data'), '--dataset', 'team']

    def truth(self, world):
        return tables(world.path('data/team.sqlite'))

    def between(self, world):
        """The tables are whole, and those of before or after; a server starts, or says why not."""
        self.look(world)
        if world.random.random() < 0.5 or world.is_between_names:
            self.start_in_between(world)
            # The server of this trial is run by us, not by its user.
            self.own(world)

    def look(self, world):
        if os.path.exists(world.path('data/team.sqlite')):
            found = self.truth(world)
            if found not in self.states(world):
                raise Failure(f'half a state: {[differences(found, s) for s in self.states(world)]}')

    def states(self, world):
        return [self.old]

    def start_in_between(self, world):
        server = self.serve(world)
        if not server.listen():
            server.ended.need(1)
            return
        with server:
            name = world.random.choice(world.devices)
            world.sync(name, server)

    def final(self, world):
        self.owned(world)
        self.unfinished(world)
        with self.serve(world) as server:
            world.save('bo')
            world.converge(server)
        self.own(world)
        Tools.run('doctor', '--data', world.path('data')).need(0)

    def owned(self, world):
        if os.geteuid() != 0:
            return
        for folder, _, files in os.walk(world.path('data')):
            for file in files:
                path = os.path.join(folder, file)
                if os.stat(path).st_uid != OWNER:
                    raise Failure(f'{path} belongs to user {os.stat(path).st_uid}')

    def unfinished(self, world):
        left = [path for ending in ('restoring',)
                for path in glob.glob(world.path(f'**/*.{ending}*'), recursive=True)
                if '/snapshots/' not in path]
        if left:
            raise Failure(f'files are left behind: {left}')


class Backup(DataFolder):
    name = 'backup'

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)

    def begin(self, world):
        # Half of the backups are taken while a server runs.
        world.out = 'team.backup'
        return self.serve(world) if world.random.random() < 0.5 else Nothing()

    def words(self, world):
        return ['backup', *self.location(world), '--out', world.path(world.out)]

    def between(self, world):
        if os.path.exists(world.path(world.out + '.json')):
            self.restored(world, 'half')

    def again(self, world):
        run = Tools.run(*self.words(world))
        if run.code == 0:
            return
        run.need(1)
        if 'give another name' not in run.err:
            raise Failure(f'it does not say what to do: {run}')
        world.out = 'other.backup'
        Tools.run(*self.words(world)).need(0)

    def final(self, world):
        self.restored(world, 'whole')

    def restored(self, world, name):
        Tools.run('restore', '--data', world.path(name), '--dataset', 'team',
                  '--in', world.path(world.out)).need(0)
        found = tables(world.path(f'{name}/team.sqlite'))
        if found != self.old:
            raise Failure(f'the backup differs: {differences(found, self.old)}')
        if name == 'half':
            # The tokens may have been away.
            return
        tokens = Tools.run('token', 'list', '--data', world.path(name)).need(0)
        if tokens.out.count('user ') != 2:
            raise Failure(f'the backup lacks tokens: {tokens}')


class Restore(DataFolder):
    name = 'restore'
    replaces = True

    def prepare(self, world):
        def go_on(world, server):
            Tools.run('backup', *self.location(world), '--out', world.path('team.backup')).need(0)
            self.backed_up = self.truth(world)
            for _ in range(world.random.randint(1, 4)):
                name = world.random.choice(world.devices)
                world.save(name)
                world.sync(name, server)
            world.save('bo')
        self.make(world, go_on)
        if not self.replaces:
            shutil.rmtree(world.path('data'))
            os.mkdir(world.path('data'))
            self.old = self.backed_up
        else:
            self.old = self.truth(world)
        self.own(world)

    def words(self, world):
        return ['restore', *self.location(world), '--in', world.path('team.backup'),
                *(['--replace'] if self.replaces else [])]

    def states(self, world):
        return [self.old, self.backed_up]

    def start_in_between(self, world):
        super().start_in_between(world)
        # Notes are never changed: those of the backup are there before and after.
        if os.path.exists(world.path('data/team.sqlite')):
            found = self.truth(world)['notes']
            missing = [note for note in self.backed_up['notes'] if note not in found]
            if missing:
                raise Failure(f'a server goes on without what was there: {missing[:3]}')

    def again(self, world):
        world.before = self.truth(world) if self.replaces else None
        run = Tools.run(*self.words(world))
        if not self.replaces and run.code == 1 and 'is there already' in run.err:
            if self.truth(world) != self.backed_up:
                # A server was started in between, and made an empty data set.
                Tools.run(*self.words(world), '--replace').need(0)
            return
        run.need(0)
        if self.truth(world) != self.backed_up:
            raise Failure('what was restored is not what was backed up')

    def final(self, world):
        if self.replaces:
            kept = glob.glob(world.path('data/team.sqlite.before-*'))
            if not any(tables(path) == world.before for path in kept if not path.endswith('-wal')):
                raise Failure('what was there is not kept')
        super().final(world)


class RestoreNew(Restore):
    name = 'restore into an empty folder'
    replaces = False

    def start_in_between(self, world):
        path = world.path('data/team.sqlite')
        is_unfinished = not os.path.exists(path) and glob.glob(path + '.restoring*') != []
        # It may know none of the devices' tokens yet.
        server = Server('--data', world.path('data'), '--schema', world.path('schema.sql'),
                        '--token', 'team:secret-of-an-operator')
        if not server.listen():
            server.ended.need(1)
            return
        with server:
            request = urllib.request.Request(
                server.address + '/sync', b'{"maxRevision":0,"changeSets":[]}',
                {'Authorization': 'Bearer secret-of-an-operator', 'Content-Type': 'application/json'})
            try:
                urllib.request.urlopen(request, timeout=60).close()
                is_served = True
            except urllib.error.HTTPError:
                is_served = False
        if is_unfinished and (is_served or os.path.exists(path)):
            raise Failure('a server begins an empty data set beside a restore that was not finished')


class Compact(DataFolder):
    name = 'compact'

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)

    def words(self, world):
        return ['compact', *self.location(world), '--keep-revisions', '1']


class TokenCreate(DataFolder):
    name = 'token create'
    fresh = False

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)
        if self.fresh:
            for path in glob.glob(world.path('data/tokens.sqlite*')):
                os.remove(path)

    def words(self, world):
        return world.token_words('create', 'team', '--user', 'ada')

    def again(self, world):
        run = Tools.run(*self.words(world)).need(0)
        world.write('ada.token', run.out.split()[0])
        if self.fresh:
            # A token for the other one as well, as his is gone.
            run = Tools.run(*world.token_words('create', 'team', '--user', 'bo')).need(0)
            world.write('bo.token', run.out.split()[0])

    def start_in_between(self, world):
        server = self.serve(world)
        with server:
            pass


class TokenCreateFirst(TokenCreate):
    """The folder has no tokens yet: the users' devices are known, and get new ones."""
    name = 'first token create'
    fresh = True

    def final(self, world):
        self.owned(world)
        world.devices = []
        with self.serve(world) as server:
            Tools.run('init', world.path('new.sqlite'), '--server', server.address,
                      '--token-file', world.path('ada.token')).need(0)


class TokenRevoke(DataFolder):
    name = 'token revoke'

    def start_in_between(self, world):
        with self.serve(world) as server:
            world.sync('ada', server)

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)
        run = Tools.run('token', 'list', *self.location(world)[:2]).need(0)
        self.identifier = next(line.split()[0] for line in run.out.splitlines() if 'user bo' in line)

    def words(self, world):
        return world.token_words('revoke', self.identifier)

    def again(self, world):
        run = Tools.run(*self.words(world))
        if run.code == 1 and f'No good token is called {self.identifier}' in run.err:
            return
        run.need(0)

    def final(self, world):
        self.owned(world)
        with self.serve(world) as server:
            world.sync('bo', server, 1)
            world.sync('ada', server)


class Serve(DataFolder):
    """A server that starts on a new schema."""
    name = 'serve with another schema'
    schema = SCHEMA.replace('city TEXT,', 'city TEXT, colour TEXT NOT NULL DEFAULT \'red\',') + \
        'CREATE TABLE places (id INTEGER PRIMARY KEY, name TEXT UNIQUE); CREATE INDEX t ON teams(name);'

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)
        world.write('schema.sql', self.schema)

    def execute(self, world, **more):
        server = self.serve(world, **more)
        if server.listen():
            with server:
                pass
        return server.ended

    def words(self, world):
        return ['serve', '--data', world.path('data'), '--schema', world.path('schema.sql'),
                '--port', '0']

    def twice(self, world):
        first, second = self.serve(world), self.serve(world)
        heard = [first.listen(), second.listen()]
        if all(heard) or not any(heard):
            raise Failure(f'of two servers on a folder {sum(heard)} started')
        for server, listens in zip((first, second), heard):
            if listens:
                with server:
                    pass
        return [first.ended, second.ended]

    def look(self, world):
        found = self.truth(world)
        added = [tuple(row[:3]) + ('red',) + tuple(row[3:]) for row in self.old['teams']]
        states = [self.old, {**self.old, 'teams': [row + ('red',) for row in self.old['teams']]},
                  {**self.old, 'teams': added}]
        if found not in states:
            raise Failure(f'half a state: {[differences(found, s) for s in states]}')

    def start_in_between(self, world):
        pass

    def again(self, world):
        self.execute(world).need(0)

    def final(self, world):
        with self.serve(world) as server:
            # The devices' tables lack the new column.
            world.save('bo')
            for _ in range(2):
                for name in world.devices:
                    world.sync(name, server)
            Tools.run('init', world.path('new.sqlite'), '--server', server.address,
                      '--token-file', world.path('ada.token')).need(0)
            connection = sqlite3.connect(world.path('new.sqlite'))
            colours = connection.execute('SELECT DISTINCT colour FROM teams').fetchall()
            if colours not in ([], [('red',)]):
                raise Failure(f'the new column is {colours}')
            truth = self.truth(world)
            if tables(world.path('new.sqlite')) != truth:
                raise Failure('a new device differs')
            world.account(truth)


class FirstServe(Serve):
    name = 'first serve of a folder'

    def prepare(self, world):
        world.write('schema.sql', self.schema)
        run = Tools.run(*world.token_words('create', 'team', '--user', 'ada')).need(0)
        world.write('ada.token', run.out.split()[0])
        self.own(world)

    def between(self, world):
        pass

    def final(self, world):
        with self.serve(world) as server:
            world.join('ada', server)
            world.save('ada')
            world.sync('ada', server, 0)
            world.account(self.truth(world))


SCENARIOS = [Backup, Restore, RestoreNew, Compact, TokenCreate, TokenCreateFirst, TokenRevoke, Serve,
             FirstServe]

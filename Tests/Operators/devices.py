"""Commands on a device's file, with a server that runs."""
import csv
import glob
import json
import os
import sqlite3
import time
import urllib.error
import urllib.request

from scenario import DataFolder
from world import Failure, Server, Tools, differences, tables


class DeviceCommand(DataFolder):
    """A command on the file of `ada`, while the server runs."""

    codes = (0, 3)

    def prepare(self, world):
        self.make(world)
        for name in world.devices:
            world.save(name)

    def begin(self, world):
        world.server = self.serve(world)
        return world.server

    def with_server(self, world, *words):
        return [*words, '--server', world.server.address, '--token-file', world.path('ada.token')]

    def between(self, world):
        run = Tools.run('status', world.path('ada.sqlite')).need(0, 3)
        if 'revision' not in run.out:
            raise Failure(f'no status: {run}')

    def again(self, world):
        Tools.run(*self.words(world)).need(*self.codes)

    def final(self, world):
        world.converge(world.server)
        self.unfinished(world)


class Init(DeviceCommand):
    name = 'init'

    def words(self, world):
        return self.with_server(world, 'init', world.path('new.sqlite'))

    def between(self, world):
        if os.path.exists(world.path('new.sqlite')):
            Tools.run('status', world.path('new.sqlite')).need(0, 1)

    def again(self, world):
        run = Tools.run(*self.words(world))
        if run.code == 0:
            return
        run.need(1)
        if 'martlet sync' not in run.err:
            raise Failure(f'it does not say what to do: {run}')
        Tools.run(*self.with_server(world, 'sync', world.path('new.sqlite'))).need(0)

    def final(self, world):
        if tables(world.path('new.sqlite')) != self.truth(world):
            raise Failure(
                f"the new device differs: {differences(tables(world.path('new.sqlite')), self.truth(world))}")
        world.devices.append('new')
        world.marks['new'] = []
        world.write('new.token', open(world.path('ada.token')).read())
        world.save('new')
        # Later commands need no more than the file's name.
        Tools.run('sync', world.path('new.sqlite')).need(0, 3)
        super().final(world)


class InitAlone(Init):
    """Without a server; the file gets one later."""
    name = 'init without a server'

    def words(self, world):
        return ['init', world.path('new.sqlite'), '--schema', world.path('schema.sql')]

    def final(self, world):
        Tools.run(*self.with_server(world, 'sync', world.path('new.sqlite'))).need(0)
        if tables(world.path('new.sqlite')) != self.truth(world):
            raise Failure('the new device differs')

    def again(self, world):
        run = Tools.run(*self.words(world))
        if run.code == 1 and 'exists already' in run.err:
            Tools.run('status', world.path('new.sqlite')).need(0)
            return
        run.need(0)


class InitOfAnother(Init):
    """Eve, who may see no note, goes on with an init of Ada's, who sees everything."""
    name = 'init that another user goes on with'

    def prepare(self, world):
        world.write('rules.sql', """
            CREATE POLICY every ON teams USING (true);
            CREATE POLICY every ON players USING (true);
            CREATE POLICY every ON notes USING (true);
            CREATE POLICY none ON notes AS RESTRICTIVE TO guest USING (false);
            """)
        super().prepare(world)
        run = Tools.run(*world.token_words('create', 'team', '--user', 'eve', '--role', 'guest')).need(0)
        world.write('eve.token', run.out.split()[0] + '\n')

    def serve(self, world, **more):
        return Server(
            '--data', world.path('data'), '--schema', world.path('schema.sql'),
            '--rules', world.path('rules.sql'), '--snapshot-every', '1', **more)

    def begin(self, world):
        server = super().begin(world)
        server.listen()
        with open(world.path('ada.token')) as file:
            token = file.read().strip()
        request = urllib.request.Request(
            f'{server.address}/snapshot', headers={'Authorization': f'Bearer {token}'})
        # Without a snapshot there is nothing to download.
        for _ in range(200):
            try:
                urllib.request.urlopen(request, timeout=20).close()
                return server
            except urllib.error.HTTPError:
                time.sleep(0.05)
        raise Failure('the server makes no snapshot')

    def again(self, world):
        file = world.path('new.sqlite')
        words = ['init', file, '--server', world.server.address, '--token-file', world.path('eve.token')]
        # A file that Ada's init has made has the notes until Eve's device has removed them.
        self.removes = os.path.exists(file)
        run = Tools.run(*words)
        if run.code == 1 and os.path.exists(file):
            if 'another user' not in run.err and 'exists already' not in run.err:
                raise Failure(f'it does not say what to do: {run}')
            for path in glob.glob(file + '*'):
                if '-seed.' not in path:
                    os.remove(path)
            self.removes = False
            run = Tools.run(*words)
        run.need(0)

    def final(self, world):
        truth = self.truth(world)
        truth['notes'] = []
        found = tables(world.path('new.sqlite'))
        if found != truth:
            raise Failure(f'Eve has other records than she may see: {differences(found, truth)}')
        notes = [mark for _, mark in self.truth(world)['notes']]
        for path in glob.glob(world.path('new.sqlite*')):
            with open(path, 'rb') as file:
                content = file.read()
            if any(mark.encode() in content for mark in notes):
                raise Failure(f'{path} has a note that Eve may not see')
        Tools.run('sync', world.path('new.sqlite')).need(0)
        listed = json.loads(Tools.run('purges', '--data', world.path('data'), '--json').need(0, 1).out)
        removed = [device for device in listed['devices'] if 'eve' in device['user'] and device.get('removed')]
        if removed and not self.removes:
            raise Failure(f'Eve had records that she may not see, and removed them: {removed}')
        DeviceCommand.final(self, world)


class Sync(DeviceCommand):
    name = 'sync'

    def words(self, world):
        return self.with_server(world, 'sync', world.path('ada.sqlite'))


class Check(DeviceCommand):
    """What triggers did not see is put back."""
    name = 'check'

    def prepare(self, world):
        super().prepare(world)
        connection = sqlite3.connect(world.path('ada.sqlite'))
        connection.executescript("""
            UPDATE martlet_control SET capture = 0;
            INSERT INTO notes VALUES (-70001, 'past the triggers');
            UPDATE teams SET city = 'Elsewhere' WHERE id IN (SELECT id FROM teams WHERE id > 0 LIMIT 2);
            DELETE FROM players WHERE id IN (SELECT id FROM players WHERE id > 0 LIMIT 1);
            UPDATE martlet_control SET capture = 1;""")
        connection.close()

    def words(self, world):
        return self.with_server(world, 'check', world.path('ada.sqlite'))


class CheckCapture(Check):
    """What triggers did not see is sent."""
    name = 'check --capture'

    def words(self, world):
        return [*super().words(world), '--capture']

    def final(self, world):
        super().final(world)
        notes = [mark for _, mark in self.truth(world)['notes'] if mark == 'past the triggers']
        if len(notes) != 1:
            raise Failure(f'{len(notes)} records that were not captured are at the server')


class Import(DeviceCommand):
    name = 'import'
    # Into a file that is away, it imports as a new device, whose records are as good.
    makes = ('ada.sqlite',)

    def prepare(self, world):
        super().prepare(world)
        os.mkdir(world.path('csv'))
        count = world.random.randint(3, 40)
        with open(world.path('csv/teams.csv'), 'w') as file:
            lines = csv.writer(file)
            lines.writerow(['id', 'name', 'weight'])
            lines.writerows([number * 3, f'Team {number}', number / 4] for number in range(count))
        with open(world.path('csv/players.csv'), 'w') as file:
            lines = csv.writer(file)
            lines.writerow(['team_id', 'id', 'name'])
            lines.writerows([number * 3, number, f'Player of Team {number}'] for number in range(count))
        with open(world.path('csv/notes.csv'), 'w') as file:
            lines = csv.writer(file)
            lines.writerow(['id', 'mark'])
            self.imported = [f'imported {number}' for number in range(count)]
            lines.writerows(enumerate(self.imported))
        self.size = world.random.choice([1, 3, 1000])

    def words(self, world):
        return self.with_server(
            world, 'import', world.path('ada.sqlite'), world.path('csv'), '--set-size', self.size)

    def final(self, world):
        world.marks['ada'] = world.marks['ada'] + self.imported
        super().final(world)
        truth = self.truth(world)
        names = {row[0]: row[1] for row in truth['teams']}
        players = [row for row in truth['players'] if row[2].startswith('Player of ')]
        wrong = [row for row in players if names.get(row[1]) != row[2][len('Player of '):]]
        if len(players) != len(self.imported) or wrong:
            raise Failure(f'{len(players)} players of {len(self.imported)}, {wrong[:3]}')


class ImportNew(Import):
    """Into a file that is not there yet."""
    name = 'import into a new file'

    def words(self, world):
        return self.with_server(
            world, 'import', world.path('new.sqlite'), world.path('csv'), '--set-size', self.size,
            '--schema', world.path('schema.sql'))

    def between(self, world):
        pass

    def final(self, world):
        world.devices.append('new')
        world.write('new.token', open(world.path('ada.token')).read())
        world.marks['new'] = []
        super().final(world)


class Export(DeviceCommand):
    name = 'export'

    def words(self, world):
        return ['export', world.path('ada.sqlite'), world.path('out')]

    def final(self, world):
        with open(world.path('out/notes.csv'), newline='') as file:
            found = sorted(row['mark'] for row in csv.DictReader(file))
        if found != sorted(mark for _, mark in world.tables('ada')['notes']):
            raise Failure('the export lacks notes')
        super().final(world)


class Snapshot(DeviceCommand):
    name = 'snapshot'

    def prepare(self, world):
        super().prepare(world)
        self.old = self.truth(world)

    def words(self, world):
        return ['snapshot', *self.location(world), '--out', world.path('seed.sqlite')]

    def between(self, world):
        if os.path.exists(world.path('seed.sqlite')):
            self.equal(world)

    def equal(self, world):
        if tables(world.path('seed.sqlite')) != self.old:
            raise Failure('the snapshot differs')

    def final(self, world):
        self.equal(world)
        super().final(world)


SCENARIOS = [Init, InitAlone, InitOfAnother, Sync, Check, CheckCapture, Import, ImportNew, Export, Snapshot]

"""The primary of a database is killed while devices save all the time, and its standby takes its place.

If each commit waits for the standby, nothing is lost. Else the standby may lack the newest commits: the
server goes on from there, devices find another history, and bring back what they had sent.
"""
import os
import random as randoms
import subprocess
import threading
import time
import traceback

from databases import SCRIPT, device_tables, psql, tables
from world import Failure, Server, Tools, World, wait_for

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'scripts')


class Databases:
    """A primary and its standby, while this is open."""

    def __init__(self, random, *settings):
        words = [os.path.join(SCRIPTS, 'databases'), 'serve', '--postgres', '--standby']
        for setting in settings:
            words += ['--set', setting]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = {}
        for line in self.process.stdout:
            if line.strip() == 'ready':
                break
            name, _, value = line.strip().partition(' ')
            said[name] = value
        self.primary, self.standby = said['POSTGRES_URL'], said['STANDBY_URL']
        (begin, first), (_, second) = (url.rsplit('@', 1) for url in (self.primary, self.standby))
        hosts, path = [first.split('/')[0], second.split('/')[0]], first.split('/')[1]
        # Whichever can be written to, in any order.
        random.shuffle(hosts)
        self.both = f"{begin}@{','.join(hosts)}/{path}"

    def order(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != 'ok':
            raise Failure(f'“{line}” was answered by “{answer}”')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Saving:
    """A device that saves and exchanges all the time, while this is open."""

    def __init__(self, world, name, server):
        self.world, self.name, self.server = world, name, server
        self.failure, self.count = None, 0
        self.go = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.go.is_set():
            try:
                self.world.save(self.name)
                self.world.sync(self.name, self.server, 0, 3, 4)
                self.count += 1
            except Failure as failure:
                self.failure = failure
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.go.set()
        self.thread.join()


def trial(seed, number, folder, is_synchronous):
    random = randoms.Random(f'{seed}/failover/{number}')
    os.makedirs(folder)
    world = World(folder, random)
    with Databases(random, 'wal_keep_size=64MB') as databases:
        psql(databases.primary, SCRIPT)
        Tools.run('postgres', 'adopt', '--postgres', databases.primary, '--name', 'team', '--tables',
                  'teams,players,notes').need(0)
        for name in ('ada', 'bo', 'cy'):
            run = Tools.run('token', 'create', 'team', '--user', name, '--postgres', databases.primary).need(0)
            world.write(f'{name}.token', run.out.split()[0])
        if is_synchronous:
            psql(databases.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'",
                 'SELECT pg_reload_conf()')
            wait_for('the standby is waited for', lambda: psql(
                databases.primary, 'SELECT sync_state FROM pg_stat_replication').strip() == 'sync')
        with Server('--data', world.path('data'), '--postgres', databases.both) as server:
            for name in ('ada', 'bo', 'cy'):
                Tools.run('init', world.path(f'{name}.sqlite'), '--server', server.address,
                          '--token-file', world.path(f'{name}.token')).need(0)
                world.devices.append(name)
                world.marks[name] = []
            with Saving(world, 'ada', server) as ada, Saving(world, 'bo', server) as bo:
                time.sleep(random.uniform(0.3, 1.5))
                if not is_synchronous:
                    # What is committed from now on is in the primary alone.
                    databases.order('standby stop immediate')
                    time.sleep(random.uniform(0.2, 1.5))
                databases.order('postgres kill')
                if not is_synchronous:
                    databases.order('standby start')
                time.sleep(random.uniform(0, 0.5))
                psql(databases.standby, 'SELECT pg_promote()')
                lost = marks_missing(world, databases)
                if is_synchronous:
                    # Its own standby is gone.
                    psql(databases.standby, 'ALTER SYSTEM RESET synchronous_standby_names',
                         'SELECT pg_reload_conf()')
                time.sleep(random.uniform(0.5, 1.5))
            for saving in (ada, bo):
                if saving.failure:
                    raise saving.failure

            def once():
                for name in world.devices:
                    world.sync(name, server, 0, 3, 4)
                truth = tables(databases.standby)
                return all(device_tables(world.path(f'{name}.sqlite')) == truth for name in world.devices)
            wait_for('the devices are equal to the database', once, 60)
            truth = tables(databases.standby)
            world.account({'notes': [(int(key), mark) for key, mark in truth['notes']]})
    return f'{ada.count + bo.count} exchanges, {lost} marks not in the standby when it took over'


def marks_missing(world, databases):
    found = {mark for _, mark in tables(databases.standby)['notes']}
    return sum(mark not in found for marks in world.marks.values() for mark in marks)


def main(seed, trials, work):
    failures = 0
    for number in range(trials):
        is_synchronous = number % 2 == 0
        name = f"fail-over {number}, {'synchronous' if is_synchronous else 'asynchronous'}"
        try:
            print(f'{name}: {trial(seed, number, os.path.join(work, str(number)), is_synchronous)}')
        except Exception as failure:
            failures += 1
            kind = '' if isinstance(failure, Failure) else traceback.format_exc()
            print(f'operators: {name}, seed {seed}: {kind}{failure}')
    print(f'{trials} fail-overs, seed {seed}, {failures} failures')
    return 1 if failures else 0

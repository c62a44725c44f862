"""Anki's sync server and its own client, which is one person's: a note for each record, with the
record as the text of one field."""
import os
import sys
import time

from anki.collection import AddNoteRequest, Collection
from anki.sync import SyncAuth

import load
from machine import Child, Failure, Relay, free_port, listens, until


class Anki:
    name = 'Anki'

    def __init__(self, folder, organisation):
        self.folder, self.organisation = folder, organisation
        os.mkdir(folder)
        self.port = free_port()
        self.child = Child(
            [sys.executable, '-m', 'anki.syncserver'], os.path.join(folder, 'log'),
            env={**os.environ, 'SYNC_USER1': 'bench:bench', 'SYNC_HOST': '127.0.0.1',
                 'SYNC_PORT': str(self.port), 'SYNC_BASE': os.path.join(folder, 'server'),
                 'MAX_SYNC_PAYLOAD_MEGS': '2000', 'RUST_LOG': 'error'})
        until(lambda: listens(self.port), self.child.process, self.name)
        self.made = 0
        self.writer = None
        self.reader = None

    def stop(self):
        for collection in (self.writer, self.reader):
            if collection is not None:
                collection.close()
        self.child.stop()

    @property
    def servers(self):
        return [self.child.process.pid]

    # Its client

    def open(self):
        self.made += 1
        return Collection(os.path.join(self.folder, f'device-{self.made}.anki2'))

    def key(self, collection, port=None):
        """What a client shows the server, from then on."""
        endpoint = f'http://127.0.0.1:{port or self.port}/'
        key = collection.sync_login(username='bench', password='bench', endpoint=endpoint).hkey
        return SyncAuth(hkey=key, endpoint=endpoint)

    def sync(self, collection, key=None):
        """One exchange, with nothing to be fetched or sent whole. Milliseconds."""
        began = time.monotonic()
        answer = collection.sync_collection(key or self.auth, False)
        milliseconds = (time.monotonic() - began) * 1_000
        if answer.required not in (answer.NO_CHANGES, answer.NORMAL_SYNC):
            raise Failure('Anki: the whole collection would have to travel')
        return milliseconds

    def whole(self, collection, key, upload):
        collection.sync_collection(key, False)
        collection.close_for_full_sync()
        collection.full_upload_or_download(auth=key, server_usn=None, upload=upload)
        collection.reopen(after_full_sync=True)

    def prepare(self):
        self.writer = self.open()
        self.auth = self.key(self.writer)
        kind, deck = self.writer.models.by_name('Basic'), self.writer.decks.id('Default')
        texts = self.organisation.players
        for first in range(0, len(texts), 10_000):
            requests = []
            for number, text in enumerate(texts[first:first + 10_000], first + 1):
                note = self.writer.new_note(kind)
                note.fields = [f'players {number}', text]
                requests.append(AddNoteRequest(note, deck))
            self.writer.add_notes(requests)
        self.notes = list(self.writer.find_notes(''))
        self.whole(self.writer, self.auth, upload=True)
        self.turn = 0

    def change(self, count):
        """Changes notes, none twice before all were."""
        notes = []
        for _ in range(count):
            note = self.writer.get_note(self.notes[self.turn % len(self.notes)])
            self.turn += 1
            note.fields[1] = note.fields[1][:-1] + f',"turn":{self.turn}}}'
            notes.append(note)
        self.writer.update_notes(notes, skip_undo_entry=True)

    def fresh(self, key=None):
        """A new device with everything; how long it took, in seconds."""
        began = time.monotonic()
        collection = self.open()
        self.whole(collection, key or self.auth, upload=False)
        count = collection.note_count()
        seconds = time.monotonic() - began
        if count < self.organisation.count:
            raise Failure(f'Anki: the device has {count} notes')
        return collection, seconds

    # What is measured

    def initial(self):
        meter = load.Meter(self.servers)
        collection, seconds = self.fresh()
        servers, _, _ = meter.read()
        collection.close()
        return [('to a usable store', 's', seconds), ('to a usable store: server CPU', 's', servers)]

    def counted(self, group):
        relay = Relay(self.port)
        collection = self.open()
        key = self.key(collection, relay.port)
        collection.close()
        relay.received = 0
        collection, _ = self.fresh(key)
        cases = []
        if group == 'initial':
            cases.append(('to a usable store: received', 'MB', relay.received / 1e6))
        for count in load.DISTANCES.get(group, ()):
            if count:
                self.change(count)
                self.sync(self.writer)
            before = relay.received
            self.sync(collection, key)
            name = f'{count:,} behind, own client' if count else 'own client'
            cases.append((f'{name}: received', 'B', relay.received - before))
        collection.close()
        relay.close()
        return cases

    def push(self):
        """One device: the server takes one person's exchanges one after the other."""
        count = 50
        meter = load.Meter(self.servers)
        times = []
        for _ in range(count):
            self.change(1)
            times.append(self.sync(self.writer))
        servers, _, seconds = meter.read()
        times.sort()
        return [
            ('one device: rate', 'sets/s', count / seconds),
            ('one device: median latency', 'ms', times[count // 2]),
            ('one device: 99th percentile latency', 'ms', times[-1]),
            ('one device: server CPU', 'ms/set', servers / count * 1_000)]

    def behind(self):
        if self.reader is None:
            self.reader, _ = self.fresh()
        self.sync(self.reader)
        cases = []
        for count, times in ((1, 9), (100, 5), (10_000, 1)):
            taken = []
            for _ in range(times):
                self.change(count)
                self.sync(self.writer)
                meter = load.Meter(self.servers)
                milliseconds = self.sync(self.reader)
                taken.append((milliseconds, meter.read()[0] * 1_000))
            middle = sorted(taken)[times // 2]
            name = f'{count:,} behind, own client'
            cases += [(name, 'ms', middle[0]), (f'{name}: server CPU', 'ms', middle[1])]
        return cases

    def idle(self):
        self.sync(self.writer)
        count = 200
        meter = load.Meter(self.servers)
        times = sorted(self.sync(self.writer) for _ in range(count))
        servers, _, _ = meter.read()
        return [
            ('median latency', 'ms', times[count // 2]),
            ('server CPU', 'ms', servers / count * 1_000)]

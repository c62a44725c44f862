import MartletModel
import MartletProtocol
import MartletRules
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// The tables of views in a data set's file.
struct EmbeddedViews: ViewStorage {
    private let store: EmbeddedStore

    init(_ store: EmbeddedStore) {
        self.store = store
    }

    func typeViews(_ keys: [TypeViewKey]) throws(StorageFault) -> [TypeView] {
        try store.working { (session) throws(SQLiteError) in
            var found: [TypeView] = []
            for key in keys {
                let make = try session.connection.statement(
                    """
                    INSERT INTO martlet_type_views (type, key) SELECT ?1, ?2 \
                    WHERE NOT EXISTS (SELECT 1 FROM martlet_type_views WHERE key = ?2)
                    """)
                make.bind(1, integer: session.numbers[key.type])
                make.bind(2, blob: key.digest)
                try make.run()
                let find = try session.connection.statement(
                    "SELECT number, revision FROM martlet_type_views WHERE key = ?1")
                defer { find.reset() }
                find.bind(1, blob: key.digest)
                guard try find.step() else {
                    throw SQLiteError.mismatch("martlet_type_views lacks a view that was made")
                }
                found.append(
                    TypeView(
                        number: find.integer(0), revision: find.isNull(1) ? nil : find.integer(1)))
            }
            return found
        }
    }

    func viewNumber(of parts: [Int64], now: Int64) throws(StorageFault) -> Int64 {
        try store.working { (session) throws(SQLiteError) in
            let text = ViewScan.text(of: zip(session.numbers, parts))
            let make = try session.connection.statement(
                """
                INSERT INTO martlet_views (number, parts) SELECT max(?2, 1 + coalesce(\
                (SELECT seq FROM sqlite_sequence WHERE name = 'martlet_views'), 0)), ?1 \
                WHERE NOT EXISTS (SELECT 1 FROM martlet_views WHERE parts = ?1)
                """)
            make.bind(1, text: text)
            make.bind(2, integer: now)
            try make.run()
            let find = try session.connection.statement(
                "SELECT number FROM martlet_views WHERE parts = ?1")
            defer { find.reset() }
            find.bind(1, text: text)
            guard try find.step() else {
                throw SQLiteError.mismatch("martlet_views lacks a view that was made")
            }
            return find.integer(0)
        }
    }

    func changedTypes(after revision: Revision) throws(StorageFault) -> Set<Int> {
        try store.working { (session) throws(SQLiteError) in
            // Without the sign, SQLite reads all records in the order of the types.
            let find = try session.connection.statement(
                "SELECT DISTINCT +type FROM martlet_records WHERE revision > ?1")
            defer { find.reset() }
            find.bind(1, integer: revision)
            var types: Set<Int> = []
            while try find.step() {
                if let type = session.numbers.firstIndex(of: find.integer(0)) { types.insert(type) }
            }
            return types
        }
    }

    func changedRecords(
        of type: Int, after revision: Revision
    ) throws(StorageFault) -> [RecordID] {
        try store.working { (session) throws(SQLiteError) in
            let find = try session.connection.statement(
                "SELECT id FROM martlet_records WHERE revision > ?1 AND +type = ?2")
            defer { find.reset() }
            find.bind(1, integer: revision)
            find.bind(2, integer: session.numbers[type])
            var ids: [RecordID] = []
            while try find.step() { ids.append(try find.recordID(0)) }
            return ids
        }
    }

    func visitRows(
        of type: Int, where match: (column: Int, values: [Value])?, _ body: (RuleRow) -> Bool
    ) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            let table = session.tables[type]
            var wantsMore = true
            guard let (column, values) = match else {
                try table.visit(where: nil) { id, attributes in
                    if wantsMore { wantsMore = body([id.value] + attributes.values) }
                }
                return
            }
            let name = column == 0 ? table.type.key : table.type.attributes[column - 1].name
            var isIndexed = column == 0
            if !isIndexed { isIndexed = try Self.isIndexed(name, of: table.type, session) }
            guard isIndexed else {
                // All rows are read once, and not once for each value.
                let wanted = Set(values)
                try table.visit(where: nil) { id, attributes in
                    let row = [id.value] + attributes.values
                    if wantsMore, wanted.contains(row[column]) { wantsMore = body(row) }
                }
                return
            }
            for value in values where wantsMore {
                try table.visit(where: (name, value)) { id, attributes in
                    if wantsMore { wantsMore = body([id.value] + attributes.values) }
                }
            }
        }
    }

    /// Returns whether SQLite finds rows by a column without reading all of them.
    private static func isIndexed(
        _ column: String, of type: EntityType, _ session: EmbeddedSession
    ) throws(SQLiteError) -> Bool {
        let find = try session.connection.statement(
            """
            SELECT 1 FROM pragma_index_list(?1) AS l JOIN pragma_index_info(l.name) AS i \
            WHERE i.seqno = 0 AND i.name = ?2 AND NOT l.partial
            """)
        defer { find.reset() }
        find.bind(1, text: type.name)
        find.bind(2, text: column)
        return try find.step()
    }

    func members(
        of view: Int64, type: Int, among ids: [RecordID]?
    ) throws(StorageFault) -> [RecordID: Bool] {
        try store.working { (session) throws(SQLiteError) in
            var members: [RecordID: Bool] = [:]
            guard let ids else {
                let find = try session.connection.statement(
                    "SELECT id, shown FROM martlet_members WHERE view = ?1")
                defer { find.reset() }
                find.bind(1, integer: view)
                while try find.step() { members[try find.recordID(0)] = find.integer(1) != 0 }
                return members
            }
            let find = try session.connection.statement(
                "SELECT shown FROM martlet_members WHERE view = ?1 AND id = ?2")
            defer { find.reset() }
            for id in ids {
                find.rewind()
                find.bind(1, integer: view)
                find.bind(2, id)
                if try find.step() { members[id] = find.integer(0) != 0 }
            }
            return members
        }
    }

    func advance(
        _ view: Int64, type: Int, to revision: Revision, shown: [RecordID], hidden: [RecordID],
        moved: Revision
    ) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            let note = try session.connection.statement(
                "UPDATE martlet_type_views SET revision = ?2 WHERE number = ?1")
            note.bind(1, integer: view)
            note.bind(2, integer: revision)
            try note.run()
            let put = try session.connection.statement(
                """
                INSERT INTO martlet_members (view, id, first, moved, shown) \
                VALUES (?1, ?2, ?3, ?3, ?4) \
                ON CONFLICT (view, id) DO UPDATE SET moved = excluded.moved, shown = excluded.shown
                """)
            for (ids, isShown) in [(shown, Int64(1)), (hidden, 0)] {
                for id in ids {
                    put.bind(1, integer: view)
                    put.bind(2, id)
                    put.bind(3, integer: moved)
                    put.bind(4, integer: isShown)
                    try put.run()
                }
            }
        }
    }

    func haveLost(_ views: [Int64], after revision: Revision) throws(StorageFault) -> Bool {
        try store.working { (session) throws(SQLiteError) in
            let find = try session.connection.statement(
                "SELECT 1 FROM martlet_members WHERE view = ?1 AND moved > ?2 AND NOT shown")
            defer { find.reset() }
            for view in views {
                find.rewind()
                find.bind(1, integer: view)
                find.bind(2, integer: revision)
                if try find.step() { return true }
            }
            return false
        }
    }

    func parts(of view: Int64) throws(StorageFault) -> [Int64]? {
        try store.working { (session) throws(SQLiteError) in
            try session.connection.text("SELECT parts FROM martlet_views WHERE number = \(view)")
                .map { ViewScan.parts($0, of: session.numbers) }
        }
    }

    func give(_ view: Int64, to principal: String, at revision: Revision) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            let note = try session.connection.statement(
                """
                INSERT INTO martlet_given (principal, view, first, last) VALUES (?1, ?2, ?3, ?3) \
                ON CONFLICT (principal, view) DO UPDATE SET last = max(last, excluded.last)
                """)
            note.bind(1, text: principal)
            note.bind(2, integer: view)
            note.bind(3, integer: revision)
            try note.run()
        }
    }

    func given(to principal: String) throws(StorageFault) -> [Int64: GivenView] {
        try store.working { (session) throws(SQLiteError) in
            let find = try session.connection.statement(
                "SELECT view, first, last FROM martlet_given WHERE principal = ?1")
            defer { find.reset() }
            find.bind(1, text: principal)
            var views: [Int64: GivenView] = [:]
            while try find.step() {
                views[find.integer(0)] = GivenView(first: find.integer(1), last: find.integer(2))
            }
            return views
        }
    }

    func give(_ view: Int64, toDevice device: Int64, at revision: Revision) throws(StorageFault) {
        let identity = DevicePurges.identity(ofDevice: device)
        try store.working { (session) throws(SQLiteError) in
            let connection = session.connection
            try connection.run("DELETE FROM martlet_given WHERE principal = '\(identity)'")
            try connection.run(
                """
                UPDATE martlet_purges SET view = \(DevicePurges.outdated) WHERE device = \(device)
                """)
        }
        try give(view, to: identity, at: revision)
    }

    func notes(ofDevices devices: [Int64]) throws(StorageFault) -> [Int64: DeviceNote] {
        var notes: [Int64: DeviceNote] = [:]
        for device in devices {
            let view = try given(to: DevicePurges.identity(ofDevice: device)).first?.key
            let confirmed = try store.working { (session) throws(SQLiteError) in
                try Self.confirmation(of: device, on: session.connection)
            }
            guard view != nil || confirmed != nil else { continue }
            notes[device] = DeviceNote(view: view ?? View.everything, confirmed: confirmed)
        }
        return notes
    }

    /// Returns the revision up to which a device's confirmation counts; nil if none counts.
    static func confirmation(
        of device: Int64, on connection: Connection
    ) throws(SQLiteError) -> Revision? {
        let find = try connection.statement(
            "SELECT revision FROM martlet_purges WHERE device = ?1 AND view > 0")
        defer { find.reset() }
        find.bind(1, integer: device)
        return try find.step() ? find.integer(0) : nil
    }

    func limit(
        confirmationOf device: Int64, to revision: Revision?
    ) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            let change = revision.map { "revision = \($0)" } ?? "view = \(DevicePurges.outdated)"
            try session.connection.run(
                "UPDATE martlet_purges SET \(change) WHERE device = \(device)")
        }
    }

    func note(_ receipt: PurgeReceipt, of device: Int64, now: Int64) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            let note = try session.connection.statement(
                """
                INSERT OR REPLACE INTO martlet_purges (device, view, revision, records, hash, time) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                """)
            note.bind(1, integer: device)
            note.bind(2, integer: receipt.view)
            note.bind(3, integer: receipt.revision)
            note.bind(4, integer: receipt.removed.count)
            note.bind(5, text: receipt.removed.text)
            note.bind(6, integer: now)
            try note.run()
        }
    }

    func retireAll() throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            try session.connection.run(ViewScan.retirement(prefix: "martlet_"))
        }
    }

    func kept() throws(StorageFault) -> (views: [KeptView], typeViews: [Int64]) {
        try store.working { (session) throws(SQLiteError) in
            let find = try session.connection.statement(
                """
                SELECT v.number, v.parts, coalesce(g.last, 0) FROM martlet_views AS v LEFT JOIN \
                (SELECT view, max(last) AS last FROM martlet_given WHERE view > 0 GROUP BY view) AS g \
                ON g.view = v.number ORDER BY v.number
                """)
            defer { find.reset() }
            var views: [KeptView] = []
            while try find.step() {
                views.append(
                    KeptView(
                        number: find.integer(0), parts: find.text(1), last: find.integer(2)))
            }
            let list = try session.connection.statement(
                "SELECT number FROM martlet_type_views ORDER BY number")
            defer { list.reset() }
            var numbers: [Int64] = []
            while try list.step() { numbers.append(list.integer(0)) }
            return (views, numbers)
        }
    }

    func removeViews(_ numbers: [Int64]) throws(StorageFault) {
        try store.working { (session) throws(SQLiteError) in
            for number in numbers {
                let remove = try session.connection.statement(
                    "DELETE FROM martlet_views WHERE number = ?1")
                remove.bind(1, integer: number)
                try remove.run()
            }
            try session.connection.run(
                """
                DELETE FROM martlet_given AS g WHERE view > 0 \
                AND NOT EXISTS (SELECT 1 FROM martlet_views WHERE number = g.view) \
                AND EXISTS (SELECT 1 FROM martlet_given AS o WHERE o.principal = g.principal \
                AND o.view >= 0 AND (o.last, o.view) > (g.last, g.view))
                """)
        }
    }

    func removeTypeView(_ number: Int64, records: Int) throws(StorageFault) -> Int {
        try store.working { (session) throws(SQLiteError) in
            let connection = session.connection
            try connection.run(
                """
                DELETE FROM martlet_members WHERE view = \(number) AND id IN \
                (SELECT id FROM martlet_members WHERE view = \(number) LIMIT \(records))
                """)
            let removed = Int(connection.changes)
            if removed < records {
                try connection.run("DELETE FROM martlet_type_views WHERE number = \(number)")
                try connection.run("DELETE FROM martlet_given WHERE view = \(-number)")
            } else {
                try connection.run(
                    """
                    UPDATE martlet_type_views SET key = CAST('removed \(number)' AS BLOB) \
                    WHERE number = \(number)
                    """)
            }
            return removed
        }
    }

    func appendNothing(now: Int64) throws(StorageFault) -> LogEntry {
        try store.working { (session) throws(SQLiteError) in
            let entry = LogEntry.ofNothing(after: session.head, now: now)
            _ = try session.nextRevision()
            try session.append(entry, content: nil, now: now)
            return entry
        }
    }
}

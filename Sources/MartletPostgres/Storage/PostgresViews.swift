import MartletModel
import MartletProtocol
import MartletRules
import MartletServerCore
import PostgresKit

/// The tables of views in a database.
struct PostgresViews: ViewStorage {
    private let store: PostgresStore
    /// The number of rows that are read at once.
    private static let rowsAtOnce = 1_000

    init(_ store: PostgresStore) {
        self.store = store
    }

    /// Runs statements after the pending writes, and returns the answer to the last.
    private func run(
        _ statements: PostgresStatement..., on session: DataSetSession
    ) throws(PostgresError) -> PostgresRows {
        let answers = try session.run(session.takePending() + statements)
        guard let last = answers.last else {
            preconditionFailure("at least one statement was run")
        }
        return last
    }

    func typeViews(_ keys: [TypeViewKey]) throws(StorageFault) -> [TypeView] {
        guard !keys.isEmpty else { return [] }
        return try store.working { (session) throws(PostgresError) in
            let digests = PostgresValue.array(PostgresArray(keys.map { .binary($0.digest) }))
            let rows = try run(
                PostgresStatement(
                    """
                    INSERT INTO _martlet.type_views (type, key) \
                    SELECT * FROM unnest($1::bigint[], $2::bytea[]) AS n(type, key) \
                    WHERE NOT EXISTS (SELECT 1 FROM _martlet.type_views AS v WHERE v.key = n.key)
                    """,
                    [PendingWrites.integers(keys.map { session.tables[$0.type].number }), digests]),
                PostgresStatement(
                    "SELECT key, number, revision FROM _martlet.type_views WHERE key = ANY ($1)",
                    [digests]), on: session)
            var found: [[UInt8]: TypeView] = [:]
            for row in 0..<rows.count {
                found[try rows.binary(row, 0)] = TypeView(
                    number: try rows.integer(row, 1),
                    revision: rows.isNull(row, 2) ? nil : try rows.integer(row, 2))
            }
            return try keys.map { (key) throws(PostgresError) in
                guard let view = found[key.digest] else {
                    throw PostgresError(.other, "_martlet.type_views lacks a view that was made")
                }
                return view
            }
        }
    }

    func viewNumber(of parts: [Int64], now: Int64) throws(StorageFault) -> Int64 {
        try store.working { (session) throws(PostgresError) in
            let text = PostgresValue.text(
                ViewScan.text(of: zip(session.tables.map(\.number), parts)))
            let rows = try run(
                PostgresStatement(
                    """
                    INSERT INTO _martlet.views (number, parts) OVERRIDING SYSTEM VALUE \
                    SELECT pg_catalog.setval(s.name, greatest(pg_catalog.nextval(s.name), $2)), $1::text \
                    FROM (SELECT pg_catalog.pg_get_serial_sequence('_martlet.views', 'number')\
                    ::pg_catalog.regclass AS name) AS s \
                    WHERE NOT EXISTS (SELECT 1 FROM _martlet.views WHERE parts = $1::text)
                    """, [text, .integer(now)]),
                PostgresStatement("SELECT number FROM _martlet.views WHERE parts = $1", [text]),
                on: session)
            guard rows.count == 1 else {
                throw PostgresError(.other, "_martlet.views lacks a view that was made")
            }
            return try rows.integer(0, 0)
        }
    }

    func changedTypes(after revision: Revision) throws(StorageFault) -> Set<Int> {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    "SELECT DISTINCT type FROM _martlet.records WHERE revision > $1",
                    [.integer(revision)]), on: session)
            var types: Set<Int> = []
            for row in 0..<rows.count {
                if let type = session.model.positions[try rows.integer(row, 0)] {
                    types.insert(type)
                }
            }
            return types
        }
    }

    func changedRecords(
        of type: Int, after revision: Revision
    ) throws(StorageFault) -> [RecordID] {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    "SELECT id FROM _martlet.records WHERE revision > $1 AND type = $2",
                    [.integer(revision), .integer(session.tables[type].number)]), on: session)
            return try ids(rows, of: type, session)
        }
    }

    private func ids(
        _ rows: PostgresRows, of type: Int, _ session: DataSetSession
    ) throws(PostgresError) -> [RecordID] {
        var ids: [RecordID] = []
        for row in 0..<rows.count {
            if let id = session.model.forms[type].id(stored: try rows.text(row, 0)) {
                ids.append(id)
            }
        }
        return ids
    }

    func visitRows(
        of type: Int, where match: (column: Int, values: [Value])?, _ body: (RuleRow) -> Bool
    ) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            let reading = try session.ruleReading(
                of: type, where: match?.column ?? 0, isAmong: match?.values)
            _ = try run(
                PostgresStatement(
                    "DECLARE martlet_rows NO SCROLL CURSOR FOR " + reading.sql, reading.values),
                on: session)
            var wantsMore = true
            while wantsMore {
                let rows = try run(
                    PostgresStatement("FETCH \(Self.rowsAtOnce) FROM martlet_rows"), on: session)
                for row in try session.ruleRows(rows, of: type) where wantsMore {
                    wantsMore = body(row)
                }
                if rows.count < Self.rowsAtOnce { break }
            }
            _ = try run(PostgresStatement("CLOSE martlet_rows"), on: session)
        }
    }

    func members(
        of view: Int64, type: Int, among ids: [RecordID]?
    ) throws(StorageFault) -> [RecordID: Bool] {
        try store.working { (session) throws(PostgresError) in
            let all = "SELECT id, shown FROM _martlet.members WHERE view = $1"
            let statement =
                ids.map { ids in
                    PostgresStatement(
                        all + " AND id = ANY ($2::text[])",
                        [.integer(view), PendingWrites.texts(ids.map(\.description))])
                } ?? PostgresStatement(all, [.integer(view)])
            let rows = try run(statement, on: session)
            var members: [RecordID: Bool] = [:]
            for row in 0..<rows.count {
                guard let id = session.model.forms[type].id(stored: try rows.text(row, 0))
                else { continue }
                members[id] = try rows.boolean(row, 1)
            }
            return members
        }
    }

    func advance(
        _ view: Int64, type: Int, to revision: Revision, shown: [RecordID], hidden: [RecordID],
        moved: Revision
    ) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            let ids = (shown + hidden).map(\.description)
            let states: [PostgresValue] =
                shown.map { _ in .boolean(true) } + hidden.map { _ in .boolean(false) }
            let note = PostgresStatement(
                "UPDATE _martlet.type_views SET revision = $2 WHERE number = $1",
                [.integer(view), .integer(revision)])
            guard !ids.isEmpty else {
                _ = try run(note, on: session)
                return
            }
            _ = try run(
                note,
                PostgresStatement(
                    """
                    INSERT INTO _martlet.members (view, id, first, moved, shown) \
                    SELECT $1, m.id, $2, $2, m.shown FROM unnest($3::text[], $4::boolean[]) \
                    AS m(id, shown) ON CONFLICT (view, id) \
                    DO UPDATE SET moved = excluded.moved, shown = excluded.shown
                    """,
                    [
                        .integer(view), .integer(moved), PendingWrites.texts(ids),
                        .array(PostgresArray(states)),
                    ]), on: session)
        }
    }

    func haveLost(_ views: [Int64], after revision: Revision) throws(StorageFault) -> Bool {
        try store.working { (session) throws(PostgresError) in
            try run(
                PostgresStatement(
                    """
                    SELECT EXISTS (SELECT 1 FROM _martlet.members \
                    WHERE view = ANY ($1::bigint[]) AND moved > $2 AND NOT shown)
                    """, [PendingWrites.integers(views), .integer(revision)]), on: session
            ).boolean(0, 0)
        }
    }

    func parts(of view: Int64) throws(StorageFault) -> [Int64]? {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    "SELECT parts FROM _martlet.views WHERE number = $1", [.integer(view)]),
                on: session)
            guard rows.count == 1 else { return nil }
            return ViewScan.parts(try rows.text(0, 0), of: session.tables.map(\.number))
        }
    }

    func give(_ view: Int64, to principal: String, at revision: Revision) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            _ = try run(
                PostgresStatement(
                    """
                    INSERT INTO _martlet.given AS g (principal, view, first, last) \
                    VALUES ($1, $2, $3, $3) ON CONFLICT (principal, view) \
                    DO UPDATE SET last = greatest(g.last, excluded.last)
                    """, [.text(principal), .integer(view), .integer(revision)]), on: session)
        }
    }

    func given(to principal: String) throws(StorageFault) -> [Int64: GivenView] {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    "SELECT view, first, last FROM _martlet.given WHERE principal = $1",
                    [.text(principal)]), on: session)
            var views: [Int64: GivenView] = [:]
            for row in 0..<rows.count {
                views[try rows.integer(row, 0)] = GivenView(
                    first: try rows.integer(row, 1), last: try rows.integer(row, 2))
            }
            return views
        }
    }

    func give(_ view: Int64, toDevice device: Int64, at revision: Revision) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            let identity = PostgresValue.text(DevicePurges.identity(ofDevice: device))
            _ = try run(
                PostgresStatement("DELETE FROM _martlet.given WHERE principal = $1", [identity]),
                PostgresStatement(
                    "UPDATE _martlet.purges SET view = $2 WHERE device = $1",
                    [.integer(device), .integer(DevicePurges.outdated)]),
                PostgresStatement(
                    """
                    INSERT INTO _martlet.given (principal, view, first, last) \
                    VALUES ($1, $2, $3, $3)
                    """, [identity, .integer(view), .integer(revision)]), on: session)
        }
    }

    func notes(ofDevices devices: [Int64]) throws(StorageFault) -> [Int64: DeviceNote] {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    """
                    SELECT d.number, g.view, p.revision \
                    FROM unnest($1::bigint[], $2::text[]) AS d(number, name) \
                    LEFT JOIN _martlet.given AS g ON g.principal = d.name \
                    LEFT JOIN _martlet.purges AS p ON p.device = d.number AND p.view > 0 \
                    WHERE g.view IS NOT NULL OR p.revision IS NOT NULL
                    """,
                    [
                        PendingWrites.integers(devices),
                        PendingWrites.texts(devices.map { DevicePurges.identity(ofDevice: $0) }),
                    ]), on: session)
            var notes: [Int64: DeviceNote] = [:]
            for row in 0..<rows.count {
                notes[try rows.integer(row, 0)] = DeviceNote(
                    view: rows.isNull(row, 1) ? View.everything : try rows.integer(row, 1),
                    confirmed: rows.isNull(row, 2) ? nil : try rows.integer(row, 2))
            }
            return notes
        }
    }

    func limit(
        confirmationOf device: Int64, to revision: Revision?
    ) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            let column = revision == nil ? "view" : "revision"
            _ = try run(
                PostgresStatement(
                    "UPDATE _martlet.purges SET \(column) = $2 WHERE device = $1",
                    [.integer(device), .integer(revision ?? DevicePurges.outdated)]), on: session)
        }
    }

    func note(_ receipt: PurgeReceipt, of device: Int64, now: Int64) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            _ = try run(
                PostgresStatement(
                    """
                    INSERT INTO _martlet.purges (device, view, revision, records, hash, time) \
                    VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (device) DO UPDATE SET \
                    view = excluded.view, revision = excluded.revision, \
                    records = excluded.records, hash = excluded.hash, time = excluded.time
                    """,
                    [
                        .integer(device), .integer(receipt.view), .integer(receipt.revision),
                        .integer(receipt.removed.count), .text(receipt.removed.text),
                        .integer(now),
                    ]), on: session)
        }
    }

    func retireAll() throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            _ = try run(
                PostgresStatement(ViewScan.retirement(prefix: "_martlet.")), on: session)
        }
    }

    func kept() throws(StorageFault) -> (views: [KeptView], typeViews: [Int64]) {
        try store.working { (session) throws(PostgresError) in
            let rows = try run(
                PostgresStatement(
                    """
                    SELECT v.number, v.parts, coalesce(g.last, 0) FROM _martlet.views AS v LEFT JOIN \
                    (SELECT view, max(last) AS last FROM _martlet.given WHERE view > 0 GROUP BY view) \
                    AS g ON g.view = v.number ORDER BY v.number
                    """), on: session)
            let views = try (0..<rows.count).map { (row) throws(PostgresError) in
                KeptView(
                    number: try rows.integer(row, 0), parts: try rows.text(row, 1),
                    last: try rows.integer(row, 2))
            }
            let list = try run(
                PostgresStatement("SELECT number FROM _martlet.type_views ORDER BY number"),
                on: session)
            let numbers = try (0..<list.count).map { (row) throws(PostgresError) in
                try list.integer(row, 0)
            }
            return (views, numbers)
        }
    }

    func removeViews(_ numbers: [Int64]) throws(StorageFault) {
        try store.working { (session) throws(PostgresError) in
            _ = try run(
                PostgresStatement(
                    "DELETE FROM _martlet.views WHERE number = ANY ($1::bigint[])",
                    [PendingWrites.integers(numbers)]),
                PostgresStatement(
                    """
                    DELETE FROM _martlet.given AS g WHERE view > 0 \
                    AND NOT EXISTS (SELECT 1 FROM _martlet.views AS v WHERE v.number = g.view) \
                    AND EXISTS (SELECT 1 FROM _martlet.given AS o WHERE o.principal = g.principal \
                    AND o.view >= 0 AND (o.last, o.view) > (g.last, g.view))
                    """), on: session)
        }
    }

    func removeTypeView(_ number: Int64, records: Int) throws(StorageFault) -> Int {
        try store.working { (session) throws(PostgresError) in
            let answers = try session.run(
                session.takePending() + [
                    PostgresStatement(
                        """
                        DELETE FROM _martlet.members WHERE view = $1 AND id IN \
                        (SELECT id FROM _martlet.members WHERE view = $1 LIMIT $2)
                        """, [.integer(number), .integer(Int64(records))])
                ])
            let removed = answers.last?.affectedCount ?? 0
            guard removed < records else {
                _ = try run(
                    PostgresStatement(
                        "UPDATE _martlet.type_views SET key = $2 WHERE number = $1",
                        [.integer(number), .binary(Array("removed \(number)".utf8))]), on: session)
                return removed
            }
            _ = try run(
                PostgresStatement(
                    "DELETE FROM _martlet.type_views WHERE number = $1", [.integer(number)]),
                PostgresStatement(
                    "DELETE FROM _martlet.given WHERE view = $1", [.integer(-number)]),
                on: session)
            return removed
        }
    }

    func appendNothing(now: Int64) throws(StorageFault) -> LogEntry {
        try store.working { (session) throws(PostgresError) in
            let entry = LogEntry.ofNothing(after: session.head, now: now)
            session.head = LogHead(revision: entry.revision, hash: entry.hash)
            session.pending.add([:], [], entry, content: [])
            return entry
        }
    }
}

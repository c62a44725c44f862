internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Copies rows of one type from an attached snapshot into the type's table.
struct RowCopy {
    private let store: LocalStore
    private let reader: SnapshotReader
    /// The position of the type in the snapshot, and in the device's schema.
    private let index: Int
    private let own: Int
    private let name: String
    private let keys: SnapshotKeys
    /// Statements that copy rows, and statements that copy their revisions: all of them, or that of
    /// the key `?1`.
    private let copyRows: (all: String, one: String)
    private let copyMarks: (all: String, one: String)
    /// Finds whether the record `?1` is missing; nil if all records are.
    private let isMissing: Statement?

    init(
        store: LocalStore, reader: SnapshotReader, index: Int, own: Int, keys: SnapshotKeys,
        selection: SnapshotRows.Selection
    ) throws {
        self.store = store
        self.keys = keys
        self.reader = reader
        self.index = index
        self.own = own
        let theirs = reader.schema.types[index]
        let type = store.schema.types[own]
        name = type.name
        let table = SQLName.quoted(name)
        let known = selection == .all ? [] : try Self.known(type, store)
        func missing(_ id: String) -> String {
            known.map { " AND NOT EXISTS (\($0) = \(id))" }.joined()
        }
        let shared = theirs.attributes.filter {
            type[attribute: $0.name].map { !$0.isGenerated } ?? false
        }.map(\.name)
        try store.announce(shared, of: own)
        // In a column that the snapshot lacks, a record gets null, like a record from the change
        // log. The column may have another name for a while, and its nulls are not kept aside.
        let absent = type.attributes.filter {
            !$0.isGenerated && !$0.refuses(.null) && !shared.contains($0.name)
                && !store.tables[own].ownColumns.contains($0.name)
        }.map(\.name)
        let key = "martlet_row.\(SQLName.quoted(theirs.key))"
        let values = [SQLName.list([theirs.key] + shared)] + absent.map { _ in "NULL" }
        let rows = """
            INSERT OR ABORT INTO main.\(table)(\(SQLName.list([type.key] + shared + absent))) \
            SELECT \(values.joined(separator: ", ")) \
            FROM \(SnapshotRows.name).\(table) AS martlet_row WHERE
            """
        copyRows = (
            "\(rows) 1\(keys.condition(key))\(missing(key)) ORDER BY \(key)", "\(rows) \(key) = ?1"
        )
        func marks(_ source: String) -> String {
            """
            INSERT OR REPLACE INTO main.martlet_records(type, id, revision) \
            SELECT \(store.numbers[own]), martlet_row.id, martlet_row.revision FROM \(source) \
            WHERE martlet_row.type = \(reader.numbers[index])
            """
        }
        let all = "\(SnapshotRows.name).martlet_records AS martlet_row"
        // The table's own order of keys counts; for some texts it is not the order of the marks.
        // The marks of some keys are therefore found one by one, however many the snapshot has.
        let some =
            keys.isAll
            ? all : "\(SnapshotRows.name).\(table) AS martlet_key CROSS JOIN \(all)"
        let keyOfRow = "martlet_key.\(SQLName.quoted(theirs.key))"
        let between =
            keys.isAll
            ? "" : " AND martlet_row.id = +\(keyOfRow)\(keys.condition(keyOfRow))"
        copyMarks = (
            marks(some) + "\(between)\(missing("martlet_row.id"))",
            marks(all) + " AND martlet_row.id = ?1"
        )
        if known.isEmpty {
            isMissing = nil
        } else {
            isMissing = try store.connection.prepare("SELECT 1\(missing("?1"))")
        }
    }

    /// Returns queries for the records of which the device knows something newer than a part's row.
    /// A key has to follow each query. Queries that would find no record are left out, so that most
    /// copies look up nothing.
    private static func known(_ type: EntityType, _ store: LocalStore) throws -> [String] {
        let ofType = "type = \(SQLName.literal(type.name)) AND "
        let sources = [
            (SQLName.quoted(type.name), "", SQLName.quoted(type.key)),
            ("martlet_passed", ofType, "id"),
            ("martlet_quarantine", ofType, "id"),
        ]
        return try sources.compactMap { table, condition, key in
            let query = "SELECT 1 FROM main.\(table) WHERE \(condition)"
            let isEmpty = try store.connection.integer("\(query)1 LIMIT 1") == nil
            return isEmpty ? nil : query + key
        }
    }

    /// Calls `body` with each record that is to be copied, in the order of keys. It must be called
    /// before `run`.
    func forEach(_ body: (RecordID, Revision, Attributes) throws -> Void) throws {
        try reader.forEach(of: index, keys) { id, revision, attributes in
            if try lacks(id) { try body(id, revision, attributes) }
        }
    }

    private func lacks(_ id: RecordID) throws -> Bool {
        guard let isMissing else { return true }
        isMissing.bind(1, id)
        defer { isMissing.reset() }
        return try isMissing.step() && isMissing.integer(0) == 1
    }

    /// Copies all rows at once. If a row is refused, or if the type has a handler, it copies them
    /// one by one, and quarantines refused rows.
    /// - Parameter isBesideOwn: Whether own edits are in the tables. One of them may be the reason
    ///   why a row is refused, so a refusal is an error then.
    func run(_ applier: inout RemoteApplier, isBesideOwn: Bool) throws {
        guard applier.registry[name] == nil else {
            return try copyEach(&applier, isBesideOwn: isBesideOwn)
        }
        try store.connection.run("SAVEPOINT martlet_seeding")
        do {
            try copyAll()
        } catch let error
            where !isBesideOwn && ErrorLocation.isData(error) && store.connection.isInTransaction
        {
            try store.connection.run("ROLLBACK TO martlet_seeding")
            try copyEach(&applier, isBesideOwn: false)
        }
        try store.connection.run("RELEASE martlet_seeding")
    }

    private func copyAll() throws {
        // This comes first, because the rows are not missing any more once they are copied.
        for sql in [copyMarks.all, copyRows.all] {
            let copy = try store.connection.prepare(sql)
            keys.bind(to: copy)
            try copy.run()
        }
    }

    private func copyEach(_ applier: inout RemoteApplier, isBesideOwn: Bool) throws {
        let row = try store.connection.prepare(copyRows.one)
        let mark = try store.connection.prepare(copyMarks.one)
        try forEach { id, revision, attributes in
            let entry = RecordEntry(
                id: id, revision: revision, attributes: attributes.withoutNulls())
            func copy(_ applier: inout RemoteApplier) throws {
                try Self.run(row, for: id)
                try Self.run(mark, for: id)
                try applier.tell(entry, of: name, isWhole: true, revision: revision)
            }
            guard !isBesideOwn else { return try copy(&applier) }
            if let reason = try applier.attempt({ try copy(&$0) }) {
                try applier.quarantine.put(
                    name, id, entry.attributes, revision: revision, message: reason)
            }
        }
    }

    private static func run(_ statement: Statement, for id: RecordID) throws {
        statement.bind(1, id)
        defer { statement.reset() }
        try statement.run()
    }
}

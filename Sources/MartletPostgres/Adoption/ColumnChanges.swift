package import MartletModel
import MartletProtocol
package import MartletRules
import MartletServerCore
package import PostgresKit

/// Announces new columns of synchronised tables to devices with their values, and also columns
/// whose values ALTER TABLE changed. Such a change fires no row trigger, so views that were computed before it
/// are to be computed from the start.
struct ColumnChanges {
    private let log: LogAppender
    private let schema: PostgresSchema
    /// The notes about the columns of each table, and what is to be noted now.
    private var columns: [(known: [String: Note], now: [String: Note])] = []
    /// Sentences about the changes.
    private(set) var notes: [String] = []
    /// The version of the tables; see `PostgresSchema.version`.
    private(set) var version: Int64
    /// Whether a policy may read other values than before.
    private var hasOtherValues = false

    init(_ log: LogAppender, _ schema: PostgresSchema) throws(PostgresError) {
        self.log = log
        self.schema = schema
        version = schema.version
        columns = try schema.tables.map { (table) throws(PostgresError) in
            (try known(table), try notes(of: table))
        }
    }

    /// The notes about a column, and about the file of its table's rows.
    private struct Note: Hashable {
        /// The column's number in the table, which no later column gets; nil if only the name is
        /// known.
        var position: Int64?
        /// The type with the values of an enumeration, and whether the column is the key.
        var form: String?
        /// The transaction that last altered the column.
        var version: String?
        var file: Int64?

        private static let keyMark = " key"

        var isKey: Bool { form?.hasSuffix(Self.keyMark) == true }

        func asKey() -> Note {
            var key = self
            key.form = form.map { $0 + Self.keyMark }
            return key
        }

        /// Returns whether the column has another type, or a value of its enumeration has another
        /// name. New values change no row. Notes of earlier releases do not have the values.
        func hasOtherForm(than old: Note) -> Bool {
            let (was, now) = (old.words, words)
            guard was.prefix(2) == now.prefix(2) else { return true }
            return was.count > 2 && !Set(was[2...]).isSubset(of: now)
        }

        private var words: [Substring] {
            (form ?? "").split(separator: " ").filter { $0 != "key" }
        }
    }

    /// Compares the columns with their notes, adds the new and changed ones to the log, and updates
    /// the notes. A table without notes has nothing to announce.
    mutating func announce() throws {
        let before = log.head
        var isOther = false
        for (type, (known, notes)) in columns.enumerated() where known != notes {
            isOther = try announce(type, known, notes) || isOther
            try note(notes, schema.tables[type])
        }
        if hasOtherValues { try Self.judgeAgain(log, after: before) }
        if isOther {
            version = try log.connection.query(
                "UPDATE _martlet.dataset SET tables = tables + 1 RETURNING tables"
            ).integer(0, 0)
        }
    }

    /// Has all views computed from the start when somebody asks for them next. The records that then enter or leave
    /// one arrive in a later revision than the last, so the log gets an entry if it has none since `before`.
    static func judgeAgain(_ log: LogAppender, after before: LogHead) throws {
        let views = try log.connection.query(
            "UPDATE _martlet.type_views SET revision = $1 WHERE revision IS NOT NULL",
            [.integer(TypeView.outdated)])
        if views.affectedCount > 0, log.head == before { try log.enter([]) }
    }

    /// Checks that no policy reads a column that was known under another name. Policies go by names, so they
    /// would read another column than the one for which they were written.
    /// - Throws: `AdoptionError` with the remedy, `PostgresError`.
    func refuseExchanged(_ policies: RulesProgram) throws {
        for (table, (known, now)) in zip(schema.tables, columns) where known != now {
            let named = policies.named(among: Array(now.keys))
            for (name, note) in now.sorted(by: { $0.key < $1.key }) {
                guard let old = known[name], old.position != note.position, named.contains(name),
                    let former = known.first(where: { $0.value.position == note.position })
                else { continue }
                throw AdoptionError(
                    """
                    the column “\(name)” of table “\(table.type.name)” is the one that was “\(former.key)”, \
                    and policies read “\(name)”
                    """,
                    "give the columns their names back, or run martlet postgres adopt if it is meant"
                )
            }
        }
    }

    /// Announces the changed columns of a type, and adds sentences about them.
    /// - Returns: Whether columns were added, were dropped or have other values.
    private mutating func announce(
        _ type: Int, _ known: [String: Note], _ now: [String: Note]
    ) throws -> Bool {
        let table = schema.tables[type]
        let name = table.type.name
        guard !known.isEmpty else { return true }
        func isReplaced(_ column: String, as name: String) -> Bool {
            guard let old = known[column], let position = old.position, let new = now[name] else {
                return false
            }
            if position != new.position || new.hasOtherForm(than: old) { return true }
            // ALTER … USING with the same type rewrites all rows. TRUNCATE and VACUUM FULL alter no
            // column.
            return old.version != new.version && old.file != nil && old.file != new.file
        }
        let gone = known.keys.filter { now[$0] == nil }.sorted()
        let added = table.columns.filter { known[$0.name] == nil }
        let replaced = table.columns.filter { isReplaced($0.name, as: $0.name) }
        for column in gone {
            self.notes.append("table “\(name)” has no column “\(column)” any more")
        }
        for column in added {
            self.notes.append("table “\(name)” has a new column “\(column.name)”")
        }
        for column in replaced {
            self.notes.append(
                "the column “\(column.name)” of table “\(name)” was altered; devices get its values"
            )
        }
        let comparison = PostgresComparison(on: log.connection, schema)
        let oldKey = known.first { $0.value.isKey }
        if let oldKey, let key = now[table.key.name], oldKey.value.position != key.position {
            hasOtherValues = true
            self.notes.append(
                """
                the key of table “\(name)” is “\(table.key.name)” now, in place of “\(oldKey.key)”; run \
                “martlet postgres adopt” for it, or what other programs write to it reaches no device
                """)
            _ = try comparison.enter(.every, of: [table.number])
            return true
        }
        // A key that was renamed still has its number.
        let isOtherKey = isReplaced(oldKey?.key ?? table.key.name, as: table.key.name)
        if isOtherKey || !gone.isEmpty || !replaced.isEmpty { hasOtherValues = true }
        if isOtherKey {
            // Other keys are other records.
            _ = try comparison.enter(.newer, of: [table.number])
        }
        if !gone.isEmpty || !replaced.isEmpty {
            // Rows that were left out because of values in these columns may be sendable now.
            try comparison.enterLeftOut(of: [table.number])
        }
        guard !(added + replaced).isEmpty else { return !gone.isEmpty || isOtherKey }
        try announce(added + replaced, of: type, cleared: Set(replaced.map(\.name)))
        if known.values.contains(where: { $0.file != nil && $0.file != now[table.key.name]?.file })
        {
            try comparison.acknowledge(table)
        }
        return true
    }

    private func known(_ table: PostgresTable) throws(PostgresError) -> [String: Note] {
        try read(
            """
            SELECT c.name, c.place, c.form, c.version, t.file FROM _martlet.columns AS c \
            JOIN _martlet.types AS t ON t.number = c.type WHERE c.type = $1
            """, table.number)
    }

    /// Returns the notes to keep. There are none for columns that devices do not receive.
    /// - Throws: `PostgresError`, of kind `busy` if columns have changed since the schema was read.
    private func notes(of table: PostgresTable) throws(PostgresError) -> [String: Note] {
        let columns = [table.key] + table.columns
        let names = Set(columns.map(\.name))
        var found = try read(
            """
            SELECT a.attname::text, a.attnum::bigint, \
            concat_ws(' ', a.atttypid, a.atttypmod, (SELECT string_agg(concat(e.oid, '=', md5(e.enumlabel)), \
            ' ' ORDER BY e.oid) FROM pg_catalog.pg_enum AS e \
            WHERE e.enumtypid = \(Catalogue.base(of: "a.atttypid")))), \
            a.xmin::text, c.relfilenode::bigint \
            FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid \
            WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped
            """, Int64(table.relation)
        ).filter { names.contains($0.key) }
        guard columns.allSatisfy({ found[$0.name]?.position == $0.number }) else {
            throw PostgresError(
                .busy, "another program is changing the columns of table “\(table.type.name)”")
        }
        found[table.key.name] = found[table.key.name]?.asKey()
        return found
    }

    private func read(
        _ sql: String, _ number: Int64
    ) throws(PostgresError) -> [String: Note] {
        let rows = try log.connection.query(sql, [.integer(number)])
        var found: [String: Note] = [:]
        for row in 0..<rows.count {
            found[try rows.text(row, 0)] = Note(
                position: rows.isNull(row, 1) ? nil : try rows.integer(row, 1),
                form: rows.isNull(row, 2) ? nil : try rows.text(row, 2),
                version: rows.isNull(row, 3) ? nil : try rows.text(row, 3),
                file: rows.isNull(row, 4) ? nil : try rows.integer(row, 4))
        }
        return found
    }

    private func note(
        _ notes: [String: Note], _ table: PostgresTable
    ) throws(PostgresError) {
        let type = PostgresValue.integer(table.number)
        let notes = notes.sorted { $0.key < $1.key }
        _ = try log.connection.query("DELETE FROM _martlet.columns WHERE type = $1", [type])
        _ = try log.connection.query(
            """
            INSERT INTO _martlet.columns (type, name, place, form, version) SELECT $1, c.* \
            FROM unnest($2::text[], $3::bigint[], $4::text[], $5::text[]) AS c
            """,
            [
                type, PendingWrites.texts(notes.map(\.key)),
                PendingWrites.integers(notes.map { $0.value.position ?? 0 }),
                PendingWrites.texts(notes.map(\.value.form)),
                PendingWrites.texts(notes.map(\.value.version)),
            ])
        _ = try log.connection.query(
            "UPDATE _martlet.types SET file = $2 WHERE number = $1",
            [type, notes.first?.value.file.map { .integer($0) } ?? .null])
    }

    /// Announces columns. The rows keep their revisions, because no program changed them, and no
    /// waiting edit of a device is stale because of it. Rows that no device can receive are not
    /// announced.
    /// - Parameter cleared: The columns whose values devices may have, even if a row now has none.
    private func announce(
        _ columns: [PostgresColumn], of type: Int, cleared: Set<String>
    ) throws {
        var pending: [RecordEntry] = []
        var bytes = 0
        let rows = try TableRows(schema.tables[type], columns: columns, on: log.connection)
        try rows.forEach(
            unsendable: { _, _ in },
            { id, row in
                let kept = zip(row.names, row.values).filter {
                    $0.1 != .null || cleared.contains($0.0)
                }
                guard !kept.isEmpty else { return }
                pending.append(
                    RecordEntry(
                        id: id, revision: nil,
                        attributes: Attributes(names: kept.map(\.0), values: kept.map(\.1))))
                for case .text(let text) in row.values { bytes += text.utf8.count }
                if pending.count == RowEntries.recordsPerSet || bytes >= RowEntries.bytesPerSet {
                    try enter(pending, of: type)
                    (pending, bytes) = ([], 0)
                }
            })
        try enter(pending, of: type)
    }

    /// Adds the rows that are records of the log. A row that another program has just made is not
    /// in the log yet.
    private func enter(_ pending: [RecordEntry], of type: Int) throws {
        guard !pending.isEmpty else { return }
        let table = schema.tables[type]
        let ids = PostgresValue.array(
            PostgresArray(pending.map { .text($0.id.description) }))
        let rows = try log.connection.query(
            """
            SELECT id, revision FROM _martlet.records \
            WHERE type = $1 AND id = ANY ($2::text[]) AND NOT deleted
            """, [.integer(table.number), ids])
        // Two keys differ if their bytes differ, but two strings are equal if they show the same
        // characters.
        var revisions: [[UInt8]: Int64] = [:]
        for row in 0..<rows.count {
            revisions[Array(try rows.text(row, 0).utf8)] = try rows.integer(row, 1)
        }
        let entries = pending.compactMap { entry in
            revisions[Array(entry.id.description.utf8)].map {
                RecordEntry(id: entry.id, revision: $0, attributes: entry.attributes)
            }
        }
        guard !entries.isEmpty else { return }
        _ = try log.connection.query(
            "INSERT INTO _martlet.announced (revision, type, id) SELECT $1, $2, unnest($3::text[])",
            [
                .integer(log.head.revision + 1), .integer(table.number),
                .array(PostgresArray(entries.map { .text($0.id.description) })),
            ])
        try log.enter([
            TypeChanges(name: table.type.name, update: entries.map(\.id), entries: entries)
        ])
    }
}

extension PostgresSchema {
    /// Reads the present tables, as a server does when it starts. It upgrades Martlet's tables to
    /// this release's format, and announces new columns to devices.
    /// - Parameters:
    ///   - now: Milliseconds since 1970.
    ///   - policies: Returns the policies of the servers for a schema; nil if there are none.
    /// - Throws: `AdoptionError` if the tables can no longer be synchronised, or if columns that policies read
    ///   have exchanged names; `PostgresError`; the errors of `policies`.
    package static func refresh(
        _ connection: PostgresConnection, now: Int64,
        policies: (Schema) throws -> RulesProgram? = { _ in nil }
    ) throws -> PostgresSchema {
        try MartletTables.upgrade(on: connection)
        return try connection.transaction {
            let log = try LogAppender(on: connection, now: now)
            let schema = try read(connection)
            var news = try ColumnChanges(log, schema)
            if let policies = try policies(schema.schema) { try news.refuseExchanged(policies) }
            try news.announce()
            try log.finish()
            return schema.adding(notes: news.notes, version: news.version)
        }
    }

    private func adding(notes more: [String], version: Int64) -> PostgresSchema {
        PostgresSchema(
            schema: schema, tables: tables, deviceScript: deviceScript, notes: notes + more,
            rowSecured: rowSecured, version: version, capture: capture)
    }
}

internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The changes that other programs made to the tables since capture was set up.
///
/// Edits that were noted before are read, and sent, by the columns that the tables had then,
/// because the server need not know the others.
struct OthersChanges {
    private struct Renames {
        let type: EntityType
        let number: Int64
        /// The present names of columns, by their former names.
        let names: [String: String]
        /// The names that columns had at first, and have again.
        let home: Set<String>
    }

    /// The former tables under their present names, as far as they still exist; nil if the present
    /// tables need no work.
    private(set) var schema: Schema?
    /// The columns that were added, by table.
    private(set) var added: [String: Set<String>] = [:]
    /// The tables that have no triggers: another program dropped them and made them again.
    private(set) var remade: [String] = []
    /// The records that the device made and the server accepted while their tables were away, by
    /// table.
    private(set) var made: [String: Set<RecordID>] = [:]
    private var renames: [Renames] = []
    /// The columns that are gone, by the number of their type.
    private var dropped: [Int64: Set<String>] = [:]
    private var forms: [Int64: NoteLayout] = [:]
    /// The positions of types whose tables came back.
    private var returned: [Int] = []

    /// Compares a store's tables with the record of them. A file of an earlier release has no
    /// record; nothing is found then.
    init(_ store: LocalStore) throws {
        let connection = store.connection
        let recorded = try NotedColumns(connection: connection).recorded()
        guard !recorded.present.isEmpty || !recorded.away.isEmpty else { return }
        let triggers = try CaptureTriggers.present(connection)
        let moved = try MovedTables(connection)
        var types: [EntityType] = []
        var isSame = true
        for (index, (type, number)) in zip(store.schema.types, store.numbers).enumerated() {
            guard var columns = recorded.present[number] ?? recorded.away[number] else {
                forms[number] = NoteLayout(type, at: index)
                isSame = false
                continue
            }
            let isReplaced = moved.replaced.contains { $0.number == number }
            if !isReplaced, let now = CaptureTriggers.noted(by: triggers, number) {
                let names = zip(columns, now).filter { $0 != $1 }
                if !names.isEmpty {
                    isSame = false
                    let homes = recorded.homes[number] ?? [:]
                    renames.append(
                        Renames(
                            type: type, number: number,
                            names: Dictionary(names, uniquingKeysWith: { first, _ in first }),
                            home: Set(names.filter { homes[$0] == $1 }.map(\.1))))
                }
                columns = now
            } else {
                remade.append(type.name)
                isSame = false
            }
            let present = CaptureTriggers.noted(type)
            let gone = Set(columns).subtracting(present)
            if !gone.isEmpty { dropped[number] = gone }
            let isNoted = columns == present
            forms[number] =
                isNoted
                ? NoteLayout(type, at: index)
                : try NoteLayout(type, at: index, noted: columns, connection)
            guard recorded.present[number] != nil else {
                returned.append(index)
                isSame = false
                continue
            }
            if !isNoted { isSame = false }
            let known = Set(columns)
            let new = present.filter { !known.contains($0) }
            if !new.isEmpty { added[type.name] = Set(new) }
            types.append(
                EntityType(
                    name: type.name, key: type.key, keyKind: type.keyKind,
                    attributes: type.attributes.filter { !new.contains($0.name) }))
        }
        if !isSame { schema = Schema(types: types) }
        try readMoved(moved, triggers, store)
    }

    /// Makes notes of a table that another program put in another's place count for the type of
    /// that place.
    private mutating func readMoved(
        _ moved: MovedTables, _ triggers: [String: String], _ store: LocalStore
    ) throws {
        for move in moved.successors {
            guard let index = store.schema.index(of: move.table),
                let columns = CaptureTriggers.noted(by: triggers, move.number)
            else { continue }
            forms[move.number] = try NoteLayout(
                store.schema.types[index], at: index, noted: columns, store.connection)
        }
    }

    /// The columns that have another name now, by table. Values that the server sent under that
    /// name meanwhile are kept aside.
    var renamed: [String: Set<String>] {
        Dictionary(
            renames.map { ($0.type.name, Set($0.names.values)) }, uniquingKeysWith: { $0.union($1) }
        )
    }

    /// Renames the columns in all stored data, and makes the store read the notes by the columns
    /// that they hold.
    mutating func follow(_ store: LocalStore) throws {
        let stored = StoredAttributes(connection: store.connection)
        for rename in renames {
            let (type, number) = (rename.type.name, rename.number)
            for (name, new) in rename.names {
                try stored.rename(name, to: new, type: type, number)
            }
        }
        let names = Dictionary(
            renames.map { ($0.number, $0.names) }, uniquingKeysWith: { first, _ in first })
        let unannounced = UnannouncedColumns(store.connection)
        for number in Set(names.keys).union(dropped.keys) {
            try unannounced.rename(names[number] ?? [:], of: number)
            for name in dropped[number] ?? [] { try unannounced.remove(name, of: number) }
            try NotedColumns(connection: store.connection).follow(
                names[number] ?? [:], dropped: dropped[number] ?? [], of: number)
        }
        for index in returned {
            try takeKeys(index, store)
            made[store.schema.types[index].name] = try baseMade(index, store)
            try countRefusedAsNew(store.numbers[index], store)
        }
        for name in remade {
            try store.schema.index(of: name).map {
                try MissingRecords(store: store, type: $0).dropWithheld()
            }
        }
        if !forms.isEmpty { store.noteForms = forms }
    }

    /// Gives rows of a table that came back the keys that the server assigned to their records
    /// meanwhile. The notes of a record follow, even if the row was deleted since.
    private func takeKeys(_ index: Int, _ store: LocalStore) throws {
        let (type, number) = (store.schema.types[index], store.numbers[index])
        guard type.keyKind == .integer else { return }
        let keys =
            "(SELECT \(SQLName.quoted(type.key)) FROM main.\(SQLName.quoted(type.name)))"
        let find = try store.connection.prepare(
            """
            SELECT temporary, id FROM martlet_ids
            WHERE type = \(number) AND id NOT IN \(keys) AND (temporary IN \(keys)
                OR temporary IN (SELECT id FROM martlet_capture WHERE type = \(number)))
            """)
        let given = try find.rows { (row) throws(SQLiteError) in (row.integer(0), row.integer(1)) }
        guard !given.isEmpty else { return }
        try store.setCapture(false)
        try RemoteTriggers(connection: store.connection).runAlone {
            for (temporary, id) in given {
                _ = try store.tables[index].changeKey(from: .integer(temporary), to: .integer(id))
                try store.connection.execute(
                    """
                    UPDATE martlet_capture SET id = \(id) WHERE type = \(number) AND id = \(temporary);
                    """)
            }
        }
        try store.setCapture(true)
    }

    /// Bases the notes of records that the device made, and the server accepted meanwhile, on the
    /// device's own set. Changes by other devices since then do not show in their rows.
    /// - Returns: These records.
    private func baseMade(_ index: Int, _ store: LocalStore) throws -> Set<RecordID> {
        let (name, number) = (store.schema.types[index].name, store.numbers[index])
        let find = try store.connection.prepare(
            """
            WITH own(id, revision) AS (
                SELECT ifnull(given.id, change.id), max(taken.revision)
                FROM martlet_confirmed_changes AS change
                    JOIN martlet_confirmed AS taken ON taken.sequence = change.sequence
                    LEFT JOIN martlet_ids AS given
                        ON given.type = change.type AND given.temporary = change.id
                WHERE change.type = ?1 GROUP BY 1
                HAVING min(change.operation) = \(RecordOperation.create.rawValue)),
            first(id, n) AS (SELECT id, min(n) FROM martlet_capture WHERE type = ?1 GROUP BY id)
            SELECT own.id, own.revision FROM own
                JOIN martlet_aside AS aside ON aside.type = ?2 AND aside.id = own.id
                LEFT JOIN first ON first.id = own.id
                LEFT JOIN martlet_capture AS note ON note.n = first.n
            WHERE own.id NOT IN (SELECT id FROM martlet_records WHERE type = ?1)
                AND note.operation IS NOT \(CaptureTriggers.Operation.inserted)
            """)
        find.bind(1, integer: number)
        find.bind(2, text: name)
        let own = try find.rows { (row) throws(SQLiteError) in
            (try row.recordID(0), row.integer(1))
        }
        let put = try store.connection.prepare(
            "INSERT INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
        for (id, revision) in own {
            put.bind(1, integer: number)
            put.bind(2, id)
            put.bind(3, integer: revision)
            try put.run()
            put.reset()
        }
        return Set(own.map(\.0))
    }

    /// Makes writes to a record whose creation was refused while its table was away count as a new
    /// record. No other device has the record, so it could be neither changed nor deleted for them.
    private func countRefusedAsNew(_ number: Int64, _ store: LocalStore) throws {
        try store.connection.execute(
            """
            UPDATE martlet_capture SET operation = \(CaptureTriggers.Operation.inserted) WHERE n IN (
                SELECT min(n) FROM martlet_capture AS note WHERE type = \(number)
                    AND EXISTS (SELECT 1 FROM martlet_parked_changes WHERE type = note.type
                        AND id = note.id AND operation = \(RecordOperation.create.rawValue))
                    AND NOT EXISTS (SELECT 1 FROM martlet_records WHERE type = note.type AND id = note.id)
                    AND NOT EXISTS (SELECT 1 FROM martlet_changes WHERE type = note.type AND id = note.id)
                    AND NOT EXISTS (SELECT 1 FROM martlet_withheld WHERE type = note.type AND id = note.id)
                GROUP BY id)
            """)
    }

    /// Stores the former names for all sets that are queued now, and the columns that the server
    /// need not have. The notes must have been taken.
    func keepNames(_ store: LocalStore) throws {
        store.noteForms = NoteLayout.ofNow(store.schema, store.numbers)
        for (name, columns) in added {
            guard let index = store.schema.index(of: name) else { continue }
            try UnannouncedColumns(store.connection).add(columns, of: store.numbers[index])
        }
        guard !renames.isEmpty else { return }
        let next = try store.counter("nextSequence")
        for rename in renames {
            try FormerNames.keep(
                rename.names, home: rename.home, type: rename.number, before: next,
                store.connection)
        }
    }
}

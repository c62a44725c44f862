internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A checked snapshot alongside the device's file, or a part of one, whose rows are added to the
/// device's tables.
struct SnapshotRows {
    let reader: SnapshotReader
    private let store: LocalStore

    static let name = "martlet_seed"

    /// The rows to add.
    enum Selection {
        /// All rows, because the tables have none.
        case all
        /// Rows of records of which the device knows nothing newer.
        case missing
    }

    /// Attaches a snapshot. The connection must not be in a transaction.
    /// - Throws: `SnapshotError` if the file is no sound snapshot; `SQLiteError`.
    init(attaching path: String, vfs: String?, to store: LocalStore) throws {
        self.store = store
        reader = try SnapshotReader(path: path, vfs: vfs)
        // The statement is not kept for reuse, because a kept one would belong to the file attached
        // next.
        let attach = try store.connection.prepare("ATTACH ? AS \(Self.name)")
        attach.bind(1, text: path)
        try attach.run()
    }

    /// Detaches the file. If that fails, the next attach reports it.
    func detach() {
        try? store.connection.execute("DETACH \(Self.name)")
    }

    var description: SnapshotDescription { reader.description }
    /// Deletes everything confirmed from the tables. Own unconfirmed sets are marked as not
    /// applied; the caller redoes them.
    ///
    /// If another program has renamed a table, its records are noted as gone: if it comes back, their rows
    /// are deleted (`RemoteApplier.noteGone`).
    static func makeRoom(in store: LocalStore) throws {
        try forgetRecords(in: store)
        try store.connection.execute(
            """
            DELETE FROM martlet_base; DELETE FROM martlet_aside; DELETE FROM martlet_quarantine;
            UPDATE martlet_outbox SET applied = 0;
            """)
        for type in store.schema.types {
            try store.connection.execute("DELETE FROM main.\(SQLName.quoted(type.name))")
        }
    }

    private static func forgetRecords(in store: LocalStore) throws {
        let away = try NotedColumns(connection: store.connection).recorded().away.keys
        guard !away.isEmpty else { return try store.connection.run("DELETE FROM martlet_records") }
        let numbers = away.sorted().map(String.init).joined(separator: ", ")
        try store.connection.execute(
            """
            INSERT OR IGNORE INTO martlet_records(type, id, revision)
                SELECT types.number, aside.id, -1 FROM martlet_aside AS aside
                    JOIN martlet_types AS types ON types.name = aside.type
                WHERE types.number IN (\(numbers));
            UPDATE martlet_records SET revision = -1 - revision
                WHERE revision >= 0 AND type IN (\(numbers));
            DELETE FROM martlet_records WHERE type NOT IN (\(numbers));
            """)
    }

    /// Adds rows to the tables, in the caller's transaction and with capture off. Rows that a table
    /// refuses are quarantined, and values without a place are kept aside.
    /// - Parameter isBesideOwn: See `RowCopy.run`.
    func add(
        _ slice: SnapshotSlice, _ selection: Selection, by applier: inout RemoteApplier,
        isBesideOwn: Bool = false
    ) throws {
        for run in slice.runs {
            let (index, keys) = (run.type, run.keys)
            let type = reader.schema.types[index]
            guard let own = store.schema.index(of: type.name) else {
                try addUnknown(index, keys, selection, by: &applier)
                continue
            }
            let described = store.schema.types[own]
            let copy = try RowCopy(
                store: store, reader: reader, index: index, own: own, keys: keys,
                selection: selection)
            // This comes first, because the records are not missing any more once they are copied.
            if type.attributes.contains(where: { described[attribute: $0.name] == nil }) {
                try copy.forEach { id, revision, attributes in
                    let unknown = store.unknown(attributes.withoutNulls(), type: own)
                    if !unknown.isEmpty {
                        try applier.keptAside.add(type.name, id, unknown, revision: revision)
                    }
                }
            }
            try copy.run(&applier, isBesideOwn: isBesideOwn)
        }
    }

    /// Passes records of a type without a table to its handler, or keeps them aside.
    private func addUnknown(
        _ index: Int, _ keys: SnapshotKeys, _ selection: Selection,
        by applier: inout RemoteApplier
    ) throws {
        let name = reader.schema.types[index].name
        let isHandled = applier.registry[name] != nil
        let number = try store.number(ofType: name)
        let passed = try store.connection.prepare(
            "SELECT 1 FROM main.martlet_passed WHERE type = ?1 AND id = ?2")
        passed.bind(1, text: name)
        try reader.forEach(of: index, keys) { id, revision, attributes in
            if selection == .missing {
                passed.bind(2, id)
                let hasPassed = try passed.step()
                passed.rewind()
                guard !hasPassed else { return }
            }
            let entry = RecordEntry(
                id: id, revision: revision, attributes: attributes.withoutNulls())
            if isHandled {
                try applier.tell(entry, of: name, isWhole: true, revision: revision)
            } else if try selection == .all || applier.keptAside.record(name, id) == nil {
                if let number { try applier.forget(number, id) }
                try applier.keptAside.add(name, id, entry.attributes, revision: revision)
            }
        }
    }
}

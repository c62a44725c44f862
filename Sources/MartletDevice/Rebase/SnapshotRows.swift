internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A checked snapshot beside the device's file, or a part of one, whose rows go into its tables.
struct SnapshotRows {
    let reader: SnapshotReader
    private let store: LocalStore

    static let name = "martlet_seed"

    /// Which of the rows go in.
    enum Selection {
        /// All: the tables have none.
        case all
        /// Those of records of which nothing newer is known.
        case missing
    }

    /// Attaches a snapshot. The connection must not be in a transaction.
    /// - Throws: `SnapshotError` for what is no sound snapshot; `SQLiteError`.
    init(attaching path: String, vfs: String?, to store: LocalStore) throws {
        self.store = store
        reader = try SnapshotReader(path: path, vfs: vfs)
        // Not kept for reuse: a statement that is kept would be of the file attached next.
        let attach = try store.connection.prepare("ATTACH ? AS \(Self.name)")
        attach.bind(1, text: path)
        try attach.run()
    }

    /// Lets go of the file. Where it cannot be let go of, the next attaching fails and says so.
    func detach() {
        try? store.connection.execute("DETACH \(Self.name)")
    }

    var description: SnapshotDescription { reader.description }
    /// Empties the tables of all that was confirmed. Own unconfirmed sets are marked as not applied;
    /// the caller redoes them.
    static func makeRoom(in store: LocalStore) throws {
        try store.connection.execute(
            """
            DELETE FROM martlet_base; DELETE FROM martlet_records; DELETE FROM martlet_aside;
            DELETE FROM martlet_quarantine; UPDATE martlet_outbox SET applied = 0;
            """)
        for type in store.schema.types {
            try store.connection.execute("DELETE FROM main.\(SQLName.quoted(type.name))")
        }
    }

    /// Puts rows into the tables, in the caller's transaction and with capture off. What a table
    /// refuses is quarantined; what there is no place for is kept aside.
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
            // Which are missing can be told only before they are in.
            if type.attributes.contains(where: { described[attribute: $0.name] == nil }) {
                try copy.forEach { id, revision, attributes in
                    let unknown = store.unknown(attributes.withoutNulls(), type: own)
                    if !unknown.isEmpty {
                        try applier.aside.add(type.name, id, unknown, revision: revision)
                    }
                }
            }
            try copy.run(&applier, isBesideOwn: isBesideOwn)
        }
    }

    /// Hands records of a type without a table to its handler, or keeps them aside.
    private func addUnknown(
        _ index: Int, _ keys: SnapshotKeys, _ selection: Selection,
        by applier: inout RemoteApplier
    ) throws {
        let name = reader.schema.types[index].name
        let isHandled = applier.registry[name] != nil
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
            } else if try selection == .all || applier.aside.record(name, id) == nil {
                try applier.aside.add(name, id, entry.attributes, revision: revision)
            }
        }
    }
}

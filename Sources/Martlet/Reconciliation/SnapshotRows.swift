internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// A checked snapshot beside the device's file, whose rows take the place of all the device has.
struct SnapshotRows {
    private let reader: SnapshotReader
    private let store: LocalStore

    private static let name = "martlet_seed"

    /// Attaches a snapshot. The connection must not be in a transaction.
    /// - Throws: `SnapshotError` for what is no sound snapshot; `SQLiteError`.
    init(attaching path: String, vfs: String?, to store: LocalStore) throws {
        self.store = store
        reader = try SnapshotReader(path: path, vfs: vfs)
        let attach = try store.connection.statement("ATTACH ? AS \(Self.name)")
        attach.bind(1, text: path)
        try attach.run()
    }

    /// Lets go of the file. Where it cannot be let go of, the next attaching fails and says so.
    func detach() {
        try? store.connection.execute("DETACH \(Self.name)")
    }

    var revision: Revision { reader.description.revision }
    var recordCount: Int { Int(reader.description.records) }
    var types: [String] { store.schema.types.map(\.name) }

    /// Puts the snapshot's rows into the tables, in place of those that are there. Own unconfirmed
    /// sets are marked as not applied; the caller redoes them.
    func install(in store: LocalStore, aside: inout Aside, quarantine: inout Quarantine) throws {
        try store.connection.execute(
            """
            DELETE FROM martlet_base; DELETE FROM martlet_records; DELETE FROM martlet_aside;
            DELETE FROM martlet_quarantine; UPDATE martlet_outbox SET applied = 0;
            """)
        for type in store.schema.types {
            try store.connection.execute("DELETE FROM main.\(SQLName.quoted(type.name))")
        }
        for (index, type) in reader.schema.types.enumerated() {
            guard let own = store.schema.index(of: type.name) else {
                try keepAside(index) { _ in
                    true
                } into: {
                    try aside.add($0, $1, $2, revision: $3)
                }
                continue
            }
            try copy(index, to: own, &quarantine)
            let described = store.schema.types[own]
            let lacking = type.attributes.filter { described[attribute: $0.name] == nil }
            if !lacking.isEmpty {
                try keepAside(index) {
                    described[attribute: $0] == nil
                } into: {
                    try aside.add($0, $1, $2, revision: $3)
                }
            }
        }
    }

    /// Copies the rows of one type; those the table refuses are quarantined.
    private func copy(_ index: Int, to own: Int, _ quarantine: inout Quarantine) throws {
        try store.connection.run("SAVEPOINT martlet_seeding")
        do {
            try copyAll(index, to: own)
        } catch let error where RemotePlace.isData(error) && store.connection.isInTransaction {
            try store.connection.run("ROLLBACK TO martlet_seeding")
            try copyEach(index, to: own, &quarantine)
        }
        try store.connection.run("RELEASE martlet_seeding")
    }

    private func copyAll(_ index: Int, to own: Int) throws {
        let theirs = reader.schema.types[index]
        let type = store.schema.types[own]
        let shared = type.attributes.filter {
            !$0.isGenerated && theirs[attribute: $0.name].map { !$0.isGenerated } ?? false
        }.map(\.name)
        let table = SQLName.quoted(type.name)
        try store.connection.execute(
            """
            INSERT INTO main.\(table)(\(SQLName.list([type.key] + shared))) \
            SELECT \(SQLName.list([theirs.key] + shared)) FROM \(Self.name).\(table)
            """)
        try store.connection.execute(
            """
            INSERT INTO martlet_records(type, id, revision) \
            SELECT \(store.numbers[own]), id, revision FROM \(Self.name).martlet_records \
            WHERE type = \(reader.numbers[index])
            """)
    }

    private func copyEach(_ index: Int, to own: Int, _ quarantine: inout Quarantine) throws {
        let table = store.tables[own]
        let name = store.schema.types[own].name
        let remember = try store.connection.statement(
            "INSERT OR REPLACE INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
        defer { remember.reset() }
        try reader.forEach(of: index) { id, revision, attributes in
            try store.connection.run("SAVEPOINT martlet_row")
            do {
                try table.insert(
                    id, store.known(attributes, type: own).withoutNulls(), absentMeansNull: true)
                remember.bind(1, integer: store.numbers[own])
                remember.bind(2, id)
                remember.bind(3, integer: revision)
                try remember.run()
            } catch let error where RemotePlace.isData(error) && store.connection.isInTransaction {
                try store.connection.run("ROLLBACK TO martlet_row")
                try quarantine.put(
                    name, id, attributes.withoutNulls(), revision: revision,
                    message: RemotePlace.sentence(error))
            }
            try store.connection.run("RELEASE martlet_row")
        }
    }

    /// Hands over what of a type's rows the tables have no place for.
    private func keepAside(
        _ index: Int, where isUnknown: (String) -> Bool,
        into keep: (String, RecordID, Attributes, Revision) throws -> Void
    ) throws {
        let name = reader.schema.types[index].name
        try reader.forEach(of: index) { id, revision, attributes in
            var unknown = Attributes()
            for (attribute, value) in zip(attributes.names, attributes.values)
            where value != .null && isUnknown(attribute) {
                unknown[attribute] = value
            }
            let isTypeUnknown = store.schema.index(of: name) == nil
            if isTypeUnknown || !unknown.isEmpty { try keep(name, id, unknown, revision) }
        }
    }
}

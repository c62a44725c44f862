internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Copies the records of a snapshot into a device's file that has none of them and nothing queued.
struct SnapshotCopy {
    /// The connection that takes remote change in.
    let store: LocalStore
    let reader: SnapshotReader

    /// Runs in one transaction of its own.
    /// - Throws: `StoreError` `.constraint` for a record the app's tables refuse.
    func run() throws {
        let connection = store.connection
        let attach = try connection.prepare("ATTACH ?1 AS martlet_seed")
        attach.bind(1, text: reader.path)
        try attach.run()
        // Detaching fails only inside a transaction, and there is none any more.
        defer { try? connection.execute("DETACH martlet_seed") }
        try connection.transaction {
            try store.setCapture(false)
            for index in reader.schema.types.indices { try copy(index) }
            try SeededFile.stand(at: reader.description, on: connection)
            try store.setCapture(true)
        }
        connection.clearStatementCache()
    }

    private func copy(_ index: Int) throws {
        let theirs = reader.schema.types[index]
        guard let position = store.schema.index(of: theirs.name) else {
            return try keepAside(index, attributes: nil)
        }
        let ours = store.schema.types[position]
        let shared = theirs.attributes.filter { attribute in
            ours[attribute: attribute.name].map { !$0.isGenerated } ?? false
        }.map(\.name)
        let table = SQLName.quoted(theirs.name)
        let from = SQLName.list([theirs.key] + shared)
        do {
            try store.connection.execute(
                """
                INSERT INTO main.\(table) (\(SQLName.list([ours.key] + shared)))
                    SELECT \(from) FROM martlet_seed.\(table)
                    ORDER BY \(SQLName.quoted(theirs.key));
                INSERT INTO main.martlet_records(type, id, revision)
                    SELECT \(store.numbers[position]), id, revision
                    FROM martlet_seed.martlet_records
                    WHERE type = \(reader.numbers[index]) ORDER BY id;
                """)
        } catch {
            throw StoreError.of(error, table: theirs.name)
        }
        let unknown = Set(
            theirs.attributes.filter { ours[attribute: $0.name] == nil && !$0.isGenerated }
                .map(\.name))
        if !unknown.isEmpty { try keepAside(index, attributes: unknown) }
    }

    /// Keeps what the app's tables have no place for, for a version of the app that has.
    /// - Parameter attributes: Those to keep; nil for all.
    private func keepAside(_ index: Int, attributes wanted: Set<String>?) throws {
        var aside = Aside(store: store)
        let type = reader.schema.types[index]
        try reader.forEach(of: index) { id, revision, attributes in
            var kept = Attributes()
            for (name, value) in zip(attributes.names, attributes.values)
            where value != .null && type[attribute: name]?.isGenerated == false {
                if wanted?.contains(name) ?? true { kept[name] = value }
            }
            if wanted == nil || !kept.names.isEmpty {
                try aside.add(type.name, id, kept, revision: revision)
            }
        }
    }
}

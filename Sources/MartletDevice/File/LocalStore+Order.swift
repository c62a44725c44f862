internal import MartletModel
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension LocalStore {
    /// If the schema has changed, checks what other programs did to the tables since this store was
    /// opened. Runs in the caller's transaction.
    ///
    /// A program that recreates a table drops capture's triggers with the old one. This recreates
    /// them, so that later writes are captured.
    /// - Returns: Whether triggers had to be made.
    /// - Throws: `StoreError` `.newer` if the tables are not those that this store knows, because
    ///   the notes of the triggers would be read wrongly. New tables and columns do no harm.
    @discardableResult
    package func checkOrder() throws -> Bool {
        try checkLayout()
        let version = try connection.integer("PRAGMA schema_version")
        guard version != orderedSchema else { return false }
        let moved = try MovedTables(connection)
        let triggers = try CaptureTriggers.present(connection)
        var present: [(EntityType, Int64)] = []
        var remade: [Int] = []
        for (index, (type, number)) in zip(schema.types, numbers).enumerated() {
            let rows = try connection.statement("SELECT name FROM pragma_table_xinfo(?)")
            rows.bind(1, text: type.name)
            let names = try Set(
                rows.rows { (row) throws(SQLiteError) in SQLName.folded(row.text(0)) })
            // A dropped table is reported by the first write to it.
            guard !names.isEmpty else { continue }
            let wanted = [type.key] + type.attributes.map(\.name)
            let noted = CaptureTriggers.noted(by: triggers, number)
            guard wanted.allSatisfy({ names.contains(SQLName.folded($0)) }),
                try !moved.concerns(type, number, connection),
                noted == nil || noted == CaptureTriggers.noted(type)
            else { throw Self.changed }
            present.append((type, number))
            if noted == nil { remade.append(index) }
        }
        if try CaptureTriggers.complete(connection, present) {
            try DeviceFile(connection: connection)
                .passKeys(of: Schema(types: present.map(\.0)))
            for index in remade {
                let missing = MissingRecords(store: self, type: index)
                try missing.dropWithheld()
                try missing.forget()
            }
            return true
        }
        orderedSchema = version
        return false
    }

    private static var changed: StoreError {
        StoreError(
            .newer,
            "Another process has changed the file's tables since it was opened here. Open it again."
        )
    }

    /// Refuses a file whose tables another process of this kind has changed.
    private func checkLayout() throws {
        guard let recorded = try integerState("layout"), recorded != layout else { return }
        let present = try DeviceFile(connection: connection).schema()
        // If another process was opened while a table was gone, values may wait for the table.
        let known = try NotedColumns(connection: connection).recorded().present
        let isSame = zip(schema.types, numbers).allSatisfy { type, number in
            let columns = CaptureTriggers.noted(type)
            return present[type.name].map { CaptureTriggers.noted($0) == columns } ?? false
                && (known.isEmpty || known[number] == columns)
        }
        guard isSame else { throw Self.changed }
        layout = recorded
    }
}

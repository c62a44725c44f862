internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Fills the columns that a table has gained: in rows, confirmed images and queued edits.
///
/// Capture is off, because these are values of the server, or the column's default, and not edits.
struct NewColumns {
    let store: LocalStore
    /// The type's position.
    let type: Int
    let columns: [Attribute]
    /// Those of the columns that had another name before. Existing rows have no default in them.
    let renamed: Set<String>
    /// Those of the columns that another program added. Edits made before do not name them, because
    /// the server need not have such a column.
    var unannounced: Set<String> = []

    private var described: EntityType { store.schema.types[type] }
    private var number: Int64 { store.numbers[type] }
    private var stored: StoredAttributes { StoredAttributes(connection: store.connection) }

    /// Fills the columns.
    /// - Throws: `StoreError` `.constraint` for a value that the table refuses.
    func fill() throws {
        try takeKeptAside()
        try fillDefaults()
        try fillEditedRows()
    }

    // MARK: - Values that arrived before the column

    /// Moves the values that were kept aside into the rows, and into the images of records with
    /// unconfirmed edits.
    private func takeKeptAside() throws {
        let edited = try editedRecords()
        let wanted = Dictionary(uniqueKeysWithValues: columns.map { ($0.name, $0) })
        var taken: [RecordID: (revision: Revision, values: Attributes)] = [:]
        try stored.rewriteKeptAside(of: described.name) { id, revision, attributes in
            var values = Attributes()
            var isAny = false
            for (name, value) in zip(attributes.names, attributes.values) {
                guard let column = wanted[name] else { continue }
                isAny = true
                attributes[name] = nil
                if !column.refuses(value) { values[name] = value }
            }
            guard isAny else { return false }
            if edited.contains(id) { taken[id] = (revision, values) }
            // A record that was deleted in the meantime has no row.
            try update(id, values)
            return true
        }
        try follow(taken)
    }

    /// Writes values that the server sent into the images of records with unconfirmed edits.
    func follow(_ taken: [RecordID: (revision: Revision, values: Attributes)]) throws {
        guard !taken.isEmpty else { return }
        try stored.rewriteImages(in: .base, of: number) { id, image in
            guard let (_, values) = taken[id] else { return false }
            for (name, value) in zip(values.names, values.values) { image[name] = value }
            return true
        }
        for table in [StoredAttributes.AttributeTable.queued, .parked] {
            try stored.rewriteChanges(in: table, of: number) { change in
                // A value that the server had when the edit was made belongs to the edit's base.
                guard let (revision, values) = taken[change.id], revision <= change.baseRevision,
                    change.base != nil
                else { return false }
                for (name, value) in zip(values.names, values.values) {
                    change.base?[name] = value
                }
                return true
            }
        }
    }

    /// Returns the records that some queued or refused edit changes.
    func editedRecords() throws -> Set<RecordID> {
        let rows = try store.connection.prepare(
            """
            SELECT id FROM martlet_changes WHERE type = ?1
            UNION SELECT id FROM martlet_parked_changes WHERE type = ?1
            """)
        rows.bind(1, integer: number)
        return Set(try rows.rows { (row) throws(SQLiteError) in try row.recordID(0) })
    }

    // MARK: - Defaults

    /// Writes the default into images that do not name the column. Without it, they would mean
    /// null.
    func fillDefaults() throws {
        var defaults = Attributes()
        var announced = Attributes()
        for column in columns where column.hasDefault && !renamed.contains(column.name) {
            let value = try ColumnDefault.value(
                of: column, table: described.name, store.connection)
            guard value != .null else { continue }
            defaults[column.name] = value
            if !unannounced.contains(column.name) { announced[column.name] = value }
        }
        guard !defaults.isEmpty else { return }
        for table in [StoredAttributes.AttributeTable.base, .withheld] {
            try stored.rewriteImages(in: table, of: number) { _, image in
                image.fill(from: defaults)
            }
        }
        for table in [StoredAttributes.AttributeTable.queued, .parked] {
            try stored.rewriteChanges(in: table, of: number) { change in
                let base = change.base?.fill(from: defaults) ?? false
                // An update names only the changed attributes; a create names all.
                guard change.operation == .create else { return base }
                return (change.after?.fill(from: announced) ?? false) || base
            }
        }
    }

    // MARK: - Rows with unconfirmed edits

    /// Fills the rows of records with unconfirmed edits. Such a row is its confirmed image with the
    /// queued edits on top. Both may hold values from a time when the table had the column before.
    func fillEditedRows() throws {
        try stored.rewriteImages(in: .base, of: number) { id, image in
            try update(id, values(in: image))
            return false
        }
        let waiting = try store.connection.prepare(
            """
            SELECT change.id, change.after FROM martlet_changes AS change
                JOIN martlet_outbox USING (sequence)
            WHERE change.type = ?1 AND change.after IS NOT NULL AND applied = 1
            ORDER BY sequence
            """)
        waiting.bind(1, integer: number)
        defer { waiting.reset() }
        while try waiting.step() {
            let after = try SyncCoder.decodeAttributes(waiting.blob(1))
            try update(waiting.recordID(0), values(in: after))
        }
    }

    private func values(in attributes: Attributes) -> Attributes {
        var values = Attributes()
        for column in columns {
            if let value = attributes[column.name], !column.refuses(value) {
                values[column.name] = value
            }
        }
        return values
    }

    private func update(_ id: RecordID, _ values: Attributes) throws {
        guard !values.isEmpty else { return }
        do {
            _ = try store.tables[type].update(id, values)
        } catch {
            throw Misfit.refusal(error, table: described.name, id: id)
        }
    }
}

extension Attributes {
    /// Adds the attributes of another list that are missing here; returns whether there were any.
    fileprivate mutating func fill(from other: Attributes) -> Bool {
        var isChanged = false
        for (name, value) in zip(other.names, other.values) where self[name] == nil {
            self[name] = value
            isChanged = true
        }
        return isChanged
    }
}

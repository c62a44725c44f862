package import MartletModel
internal import MartletProtocol
package import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The overall change of one record by all of its noted writes.
package struct RecordChange: Sendable {
    /// The type's position in the schema.
    package let type: Int
    package let id: RecordID
    package let operation: RecordOperation
    /// The whole record before; nil for a create.
    package let before: Attributes?
    /// For a create, all attributes that are not null, and nulls of columns with a default. For an
    /// update, the changed attributes. Empty for a delete.
    package let after: Attributes
    /// The revision that the change is based on; nil for the record's present one.
    package var base: Revision?

    package init(
        type: Int, id: RecordID, operation: RecordOperation, before: Attributes?, after: Attributes
    ) {
        self.type = type
        self.id = id
        self.operation = operation
        self.before = before
        self.after = after
    }
}

extension LocalStore {
    /// Whether any write to a table of the schema is noted and not yet taken.
    package var hasCapture: Bool {
        get throws {
            try connection.integer(
                "SELECT 1 FROM martlet_capture WHERE type IN (\(notedNumbers)) LIMIT 1") != nil
        }
    }

    /// The number of records that were written in tables which the file no longer has. Their notes
    /// are taken once the file has the tables again.
    package var awayCount: Int {
        get throws {
            Int(
                try connection.integer(
                    """
                    SELECT count(*) FROM (
                        SELECT DISTINCT type, id FROM martlet_capture WHERE type NOT IN (\(notedNumbers)))
                    """) ?? 0)
        }
    }

    /// The new records that are noted in tables which the file does not have: the number of each
    /// one's type, and its id.
    package var awayNew: [(number: Int64, id: RecordID)] {
        get throws {
            let rows = try connection.statement(
                """
                SELECT DISTINCT type, id FROM martlet_capture
                WHERE type NOT IN (\(notedNumbers)) AND operation = \(CaptureTriggers.Operation.inserted)
                """)
            var new: [(number: Int64, id: RecordID)] = []
            _ = try rows.rows { (row) throws(SQLiteError) -> Void in
                // A row under an impossible key is no record.
                if let id = try? row.recordID(1) { new.append((row.integer(0), id)) }
            }
            return new
        }
    }

    /// Takes the triggers' notes and deletes them. It returns each record once, in the order in
    /// which they were first written. Notes of tables that the file does not have stay. Runs in the
    /// caller's transaction.
    /// - Complexity: O(*n*) in the notes.
    package func takeNotes() throws -> [NotedRecord] {
        var noted: [NotedRecord] = []
        var positions: [RecordAddress: Int] = [:]
        var hasOthers = false
        let rows = try connection.statement("SELECT * FROM martlet_capture ORDER BY n")
        defer { rows.reset() }
        var isEmpty = true
        var images: ClosedRange<Int64>?
        while try rows.step() {
            let number = rows.integer(1)
            let operation = rows.integer(2)
            // The images of an insertion are directly before it.
            let own = images
            if operation == CaptureTriggers.Operation.image {
                images = (images?.lowerBound ?? rows.integer(0))...rows.integer(0)
            } else {
                images = nil
            }
            guard let form = noteForms[number] else {
                hasOthers = true
                continue
            }
            let type = form.index
            isEmpty = false
            // A row under an impossible key is no record.
            guard let id = try? rows.recordID(3) else { continue }
            let address = RecordAddress(type, id)
            let position: Int
            if let known = positions[address] {
                position = known
            } else {
                position = noted.count
                positions[address] = position
                noted.append(
                    NotedRecord(
                        type: type, id: id,
                        existed: operation != CaptureTriggers.Operation.inserted))
            }
            noted[position].pass(operation, at: rows.integer(0), own: own)
            guard operation != CaptureTriggers.Operation.inserted, noted[position].existed else {
                continue
            }
            try collect(rows, form, into: &noted[position])
        }
        guard !isEmpty else { return [] }
        try connection.run(
            "DELETE FROM martlet_capture" + (hasOthers ? " WHERE type IN (\(notedNumbers))" : ""))
        return noted
    }

    /// Takes the old values of one noted row, unless some are known already, because the oldest
    /// count. A value that the wire cannot carry counts as null, so that any other value is sent.
    private func collect(
        _ row: Statement, _ form: NoteLayout, into noted: inout NotedRecord
    ) throws {
        guard noted.old.isEmpty else { return }
        let attributes = schema.types[form.index].attributes
        noted.old = [Value?](repeating: nil, count: attributes.count)
        for (index, value) in form.begun { noted.old[index] = value }
        for (slot, position) in form.slots.enumerated() {
            guard let index = position else { continue }
            do {
                noted.old[index] = try row.value(Int32(4 + slot), kind: attributes[index].kind)
            } catch {
                guard error.isMismatch else { throw error }
                noted.old[index] = .null
            }
        }
    }

    /// Creates the note of a record with its earlier values. A column that was added since had its
    /// default.
    /// - Parameter image: The earlier values, without nulls; nil if the record did not exist.
    package func note(of id: RecordID, type: Int, image: Attributes?) -> NotedRecord {
        var image = image
        for (index, value) in noteForms[numbers[type]]?.begun ?? [:] where value != .null {
            let name = schema.types[type].attributes[index].name
            if image?[name] == nil { image?[name] = value }
        }
        return NotedRecord(type: type, id: id, image: image, schema: schema)
    }

    /// Returns the overall change of a noted record; nil if its values are the same as before.
    /// - Throws: `SQLiteError` with `isMismatch` if the record holds a value that the wire cannot
    ///   carry.
    /// - Complexity: One look-up.
    package func change(of noted: NotedRecord) throws -> RecordChange? {
        let now = try tables[noted.type].read(noted.id)
        guard noted.existed else {
            guard let now else { return nil }
            return RecordChange(
                type: noted.type, id: noted.id, operation: .create, before: nil,
                after: try created(now, type: noted.type))
        }
        // The row disappeared with its table, which another program dropped. Nobody deleted the
        // record.
        if now == nil, !noted.mayBeGone { return nil }
        return try changed(noted, now: now)
    }

    private func changed(_ touched: NotedRecord, now: Attributes?) throws -> RecordChange? {
        let type = touched.type
        let attributes = schema.types[type].attributes
        var names: [String] = []
        var oldest: [Value] = []
        var changedNames: [String] = []
        var changedValues: [Value] = []
        for index in attributes.indices where !attributes[index].isGenerated {
            let name = attributes[index].name
            // Rows are read in the table's order, so the value mostly has the same index.
            let current = now.flatMap { $0.names[index] == name ? $0.values[index] : $0[name] }
            let noted = touched.old.isEmpty ? nil : touched.old[index]
            guard let old = noted ?? current else {
                throw StoreError(
                    .inconsistent, "A deleted record of \(schema.types[type].name) left no image.")
            }
            names.append(name)
            oldest.append(old)
            if let current, current != old {
                changedNames.append(name)
                changedValues.append(current)
            }
        }
        if now != nil, changedNames.isEmpty { return nil }
        return RecordChange(
            type: type, id: touched.id, operation: now == nil ? .delete : .update,
            before: Attributes(names: names, values: oldest),
            after: Attributes(names: changedNames, values: changedValues))
    }

    /// Returns the attributes of a new record. It leaves out a null, unless the server would put
    /// the column's default in its place. It also leaves out the first value of a column that was
    /// added after the note, and the default of a column that the server need not have.
    private func created(_ attributes: Attributes, type: Int) throws -> Attributes {
        let described = schema.types[type]
        let begun = noteForms[numbers[type]]?.begun ?? [:]
        var names: [String] = []
        var values: [Value] = []
        for (name, value) in zip(attributes.names, attributes.values) {
            guard let attribute = described[attribute: name], !attribute.isGenerated,
                value != .null || attribute.hasDefault
            else { continue }
            if !begun.isEmpty, let index = described.index(ofAttribute: name), begun[index] == value
            {
                continue
            }
            if try saysNothing(value, of: name, type: type) { continue }
            names.append(name)
            values.append(value)
        }
        return names.count == attributes.count
            ? attributes : Attributes(names: names, values: values)
    }

    /// Returns a record's attributes without those that the database computes.
    package func stored(_ attributes: Attributes, type: Int) -> Attributes {
        let described = schema.types[type].attributes
        guard described.contains(where: \.isGenerated) else { return attributes }
        var result = Attributes()
        for (name, value) in zip(attributes.names, attributes.values)
        where schema.types[type][attribute: name]?.isGenerated != true {
            result[name] = value
        }
        return result
    }
}

/// A record that one or more transactions wrote.
package struct NotedRecord: Sendable {
    /// The type's position in the schema.
    package let type: Int
    package let id: RecordID
    /// Whether the record existed before.
    package let existed: Bool
    /// Whether a deletion was noted.
    private var wasDeleted = false
    /// Whether an image was noted of a row that may be replaced, and no row took its place since.
    /// No note tells that REPLACE removes the row. Before that, ON DELETE actions and the app's
    /// triggers may change it, which is noted.
    private var mayBeReplaced = false
    /// The number of the latest note that is an image; nil if none is.
    private var imagedAt: Int64?
    /// The oldest noted value of each attribute, by its position; empty if nothing was noted.
    package fileprivate(set) var old: [Value?] = []

    /// Whether the notes explain that the row is gone.
    fileprivate var mayBeGone: Bool { wasDeleted || mayBeReplaced }

    /// Adds a note of the record.
    /// - Parameters:
    ///   - number: The note's number.
    ///   - own: The numbers of the images directly before the note, which the same statement noted;
    ///     nil if there are none.
    fileprivate mutating func pass(_ operation: Int64, at number: Int64, own: ClosedRange<Int64>?) {
        switch operation {
        case CaptureTriggers.Operation.deleted: wasDeleted = true
        case CaptureTriggers.Operation.image:
            mayBeReplaced = true
            imagedAt = number
        case CaptureTriggers.Operation.inserted:
            // If the row was gone already, another row had replaced it, and OR IGNORE may have
            // skipped this insertion.
            if let imagedAt, own?.contains(imagedAt) ?? false { mayBeReplaced = false }
        default: break
        }
    }

    init(type: Int, id: RecordID, existed: Bool) {
        self.type = type
        self.id = id
        self.existed = existed
    }

    /// Creates the note of a record with its earlier values.
    /// - Parameter image: The earlier values, without nulls; nil if the record did not exist.
    package init(type: Int, id: RecordID, image: Attributes?, schema: Schema) {
        self.init(type: type, id: id, existed: image != nil)
        wasDeleted = true
        guard let image else { return }
        old = schema.types[type].attributes.map { $0.isGenerated ? nil : image[$0.name] ?? .null }
    }

    /// Returns the earlier values, without nulls; nil if the record did not exist.
    package func image(_ described: EntityType) -> Attributes? {
        guard existed else { return nil }
        var image = Attributes()
        for (attribute, value) in zip(described.attributes, old) {
            if let value, value != .null { image[attribute.name] = value }
        }
        return image
    }
}

extension Attributes {
    /// Returns the attributes that are not null. If there are no nulls, it returns the list itself.
    /// - Complexity: O(*n*) in the attributes.
    package func withoutNulls() -> Attributes {
        guard values.contains(.null) else { return self }
        var names: [String] = []
        var values: [Value] = []
        for (name, value) in zip(self.names, self.values) where value != .null {
            names.append(name)
            values.append(value)
        }
        return Attributes(names: names, values: values)
    }
}

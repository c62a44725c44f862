package import MartletModel
internal import MartletProtocol
package import SQLiteKit

/// Hashes the records of one type over some of its attributes. Equal records have equal hashes on
/// every storage.
///
/// A record contributes two hashes to its range: that of its row, and that of its revision, called
/// its mark. docs/wire.md defines the hashed bytes.
package struct RowHasher: Sendable {
    private enum What {
        static let row: UInt8 = 1
        static let mark: UInt8 = 2
    }

    package let type: EntityType
    /// The hashed attributes, in the order of their names' bytes.
    package let attributes: [Attribute]
    private let kinds: [AttributeKind]
    private let seed: UInt64
    private var canonical: CanonicalBytes

    /// Whether the values of the row hashed last can be sent to a device. Only a hasher that checks
    /// values computes this.
    package var isSendable: Bool { canonical.isSendable && !isTooLarge }
    private let checksValues: Bool
    /// Whether the row hashed last was too large.
    private var isTooLarge = false

    /// Creates a hasher.
    /// - Parameters:
    ///   - attributes: Attributes of the type, in any order.
    ///   - checksValues: Whether to compute `isSendable`.
    package init(type: EntityType, attributes: [Attribute], checksValues: Bool = false) {
        canonical = CanonicalBytes(checksValues: checksValues)
        self.checksValues = checksValues
        self.type = type
        self.attributes = attributes.sorted {
            $0.name.utf8.lexicographicallyPrecedes($1.name.utf8)
        }
        kinds = self.attributes.map(\.kind)
        seed = XXH64.hash(Array(type.name.utf8))
    }

    /// Creates a hasher of all attributes that devices and servers store. It leaves out those that
    /// the database computes.
    package init(type: EntityType, checksValues: Bool = false) {
        self.init(
            type: type, attributes: type.attributes.filter { !$0.isGenerated },
            checksValues: checksValues)
    }

    /// The columns that a statement must select from the type's table for its rows to be hashed: the
    /// key, then the attributes.
    package var columns: String {
        SQLName.list([type.key] + attributes.map(\.name), of: type.name)
    }

    /// Returns the hash of the current row.
    /// - Parameter row: A statement that selects `columns`; other columns may follow.
    package mutating func hash(_ row: Statement) -> UInt64 {
        canonical.begin(What.row)
        canonical.append(row, 0, row.storage(0), kind: .any)
        var column: Int32 = 1
        for kind in kinds {
            let storage = row.storage(column)
            if storage != .null {
                canonical.append(position: UInt16(truncatingIfNeeded: column))
                canonical.append(row, column, storage, kind: kind)
            }
            column += 1
        }
        let isLong = checksValues && 6 * canonical.bytes.count > Limits.rowBytes
        isTooLarge = isLong && canonical.isSendable && isTooLarge(row)
        return XXH64.hash(canonical.bytes, seed: seed)
    }

    /// Returns whether the current row has more encoded bytes than a device can be sent.
    private func isTooLarge(_ row: Statement) -> Bool {
        var bytes = 0
        for (index, attribute) in attributes.enumerated() {
            // A value that cannot be read cannot be sent either.
            guard let value = try? row.value(Int32(index + 1), kind: attribute.kind) else {
                return true
            }
            bytes += attribute.name.utf8.count + 4 + value.wireByteCount
        }
        return bytes > Limits.rowBytes
    }

    /// Returns the reason why the current row cannot be sent, without values: “column … holds …”.
    package func mismatch(_ row: Statement) -> String {
        for (index, kind) in kinds.enumerated() {
            do throws(SQLiteError) {
                _ = try row.value(Int32(index + 1), kind: kind)
            } catch {
                return error.message
            }
        }
        return RecordTable.tooLarge(Limits.rowBytes).message
    }

    /// Returns the hash of a row as the wire carries it. Missing attributes count as null.
    package mutating func hash(_ id: RecordID, _ record: Attributes) -> UInt64 {
        canonical.begin(What.row)
        canonical.append(id)
        for (index, attribute) in attributes.enumerated() {
            guard let value = record[attribute.name], value != .null else { continue }
            canonical.append(position: UInt16(truncatingIfNeeded: index + 1))
            canonical.append(value, kind: attribute.kind)
        }
        return XXH64.hash(canonical.bytes, seed: seed)
    }

    /// Returns the hash of a record's revision.
    package mutating func mark(_ id: RecordID, _ revision: Revision) -> UInt64 {
        canonical.begin(What.mark)
        canonical.append(id)
        canonical.append(integer: revision)
        return XXH64.hash(canonical.bytes, seed: seed)
    }

    /// Returns the hash of the revision of the record whose id is in the row's first column.
    package mutating func mark(_ row: Statement, _ revision: Revision) -> UInt64 {
        canonical.begin(What.mark)
        canonical.append(row, 0, row.storage(0), kind: .any)
        canonical.append(integer: revision)
        return XXH64.hash(canonical.bytes, seed: seed)
    }

    /// Returns the hash of all records of the type in a file with `martlet_records`, such as a
    /// device's file or a snapshot.
    /// - Parameters:
    ///   - number: The type's number in that file.
    ///   - unsendable: Called with the rows whose values cannot be sent, by a hasher that checks
    ///     values.
    /// - Complexity: O(*n*), two scans in the order of the keys.
    package mutating func whole(
        on connection: Connection, number: Int64,
        unsendable: (_ id: RecordID, _ reason: String) -> Void = { _, _ in }
    ) throws(SQLiteError) -> RangeHash {
        var hash = RangeHash()
        let table = SQLName.quoted(type.name)
        let rows = try connection.prepare(
            "SELECT \(columns) FROM \(table) WHERE \(table).\(SQLName.quoted(type.key)) IS NOT NULL"
        )
        defer { rows.reset() }
        while try rows.step() {
            hash.add(row: self.hash(rows))
            if !isSendable { unsendable(try rows.recordID(0), mismatch(rows)) }
        }
        let marks = try connection.prepare(
            "SELECT id, revision FROM martlet_records WHERE type = ?1 AND id IS NOT NULL")
        defer { marks.reset() }
        marks.bind(1, integer: number)
        while try marks.step() { hash.add(mark: mark(marks, marks.integer(1))) }
        return hash
    }

    /// Returns the hash of the records that have both a row and a revision, in one scan.
    /// - Parameters:
    ///   - number: The type's number in the file.
    ///   - condition: A further condition on the records: SQL on the row `t` and its mark `r`.
    package mutating func listed(
        on connection: Connection, number: Int64, where condition: String
    ) throws(SQLiteError) -> RangeHash {
        let names = [type.key] + attributes.map(\.name)
        let columns = names.map { "t.\(SQLName.quoted($0))" }
        // The plus removes the key's affinity, which would prevent the look-up of the marks: theirs
        // have none (https://sqlite.org/optoverview.html#where_clause_analysis).
        let rows = try connection.prepare(
            """
            SELECT \(columns.joined(separator: ", ")), r.revision
            FROM \(SQLName.quoted(type.name)) AS t CROSS JOIN martlet_records AS r
            WHERE r.type = ?1 AND r.id = +\(columns[0]) AND \(condition)
            """)
        defer { rows.reset() }
        rows.bind(1, integer: number)
        let last = Int32(names.count)
        var hash = RangeHash()
        while try rows.step() {
            hash.add(row: self.hash(rows))
            hash.add(mark: mark(rows, rows.integer(last)))
        }
        return hash
    }
}

package import MartletModel
package import MartletProtocol
package import SQLiteKit

/// Reads a snapshot file from an untrusted source.
///
/// Opening checks that the file is a snapshot and has no other tables or objects; `verify` checks
/// its content. Nothing of it may be used before both have returned. The file is only read, and it
/// may be in a folder that cannot be written.
package final class SnapshotReader {
    package let path: String
    /// A connection that can only read.
    package let connection: Connection
    package let description: SnapshotDescription
    package let schema: Schema
    /// The number that each type has in the file's `martlet_types` and `martlet_records`, in the
    /// order of `schema.types`.
    package let numbers: [Int64]

    /// Opens a file.
    /// - Throws: `SnapshotError` if the file is no sound snapshot, `SQLiteError` if the disk fails.
    package init(path: String, vfs: String? = nil) throws {
        self.path = path
        do {
            connection = try Connection(
                path: path, mode: .readOnly, vfs: vfs, tracksTables: true)
            try connection.distrustSchema()
            let form = SnapshotForm(connection: connection)
            try form.check()
            schema = try SchemaReader.read(connection)
            description = try form.description(of: schema)
            numbers = try form.numbers(of: schema)
        } catch {
            throw Self.judged(error)
        }
    }

    /// Checks the whole content: the pages, and every type's records, including their values.
    /// - Complexity: O(*n*) in the bytes of the file, in constant memory.
    /// - Throws: The same errors as the initializer.
    package func verify() throws {
        do {
            // This checks the indexes of keys and UNIQUE too, because a row that an index omits
            // would not be found.
            let found = try connection.text("PRAGMA integrity_check(1)")
            guard found == "ok" else { throw SnapshotError.damaged("pages contradict each other") }
            for (index, type) in schema.types.enumerated() {
                try verify(type, number: numbers[index])
            }
            let listed = try connection.integer("SELECT count(*) FROM martlet_records")
            guard listed == description.records else {
                throw SnapshotError.damaged("it lists records that it does not have")
            }
        } catch {
            throw Self.judged(error)
        }
    }

    /// Refuses a snapshot of another data set.
    /// - Parameter dataSet: The expected data set; nil accepts any.
    /// - Throws: `SnapshotError` `.other`.
    package func expect(dataSet: String?) throws(SnapshotError) {
        guard dataSet == nil || dataSet == description.dataSet else {
            throw SnapshotError(
                .other,
                "The snapshot is one of another data set; take one of the data set the device"
                    + " belongs to.")
        }
    }

    /// Refuses a file that is not the named part of a manifest.
    /// - Parameter part: The part's name; nil is refused.
    /// - Throws: `SnapshotError` `.other`.
    package func expect(
        _ part: String?, of manifest: SnapshotManifest
    ) throws(SnapshotError) {
        let listed = manifest.parts.first { $0.name == part }
        let counts = Dictionary(
            (listed?.types ?? []).map { ($0.name, $0.records) }, uniquingKeysWith: { $1 })
        guard description.part == part, description.parts == manifest.parts.map(\.name),
            description.dataSet == manifest.dataSet, description.revision == manifest.revision,
            description.lineage == manifest.lineage, description.schema == manifest.schema,
            description.types.allSatisfy({ $0.records == counts[$0.name] ?? 0 })
        else {
            throw SnapshotError(
                .other,
                "The snapshot is another one than was announced; fetch it again.")
        }
    }

    /// Calls `body` with the records of a type, in the order of keys, and with the revision at
    /// which each last changed.
    /// - Parameter keys: The range of keys; all by default.
    package func forEach(
        of type: Int, _ keys: SnapshotKeys = SnapshotKeys(),
        _ body: (RecordID, Revision, Attributes) throws -> Void
    ) throws {
        let entity = schema.types[type]
        let list = ColumnList(entity.attributes)
        let columns = list.names.map { ", t.\(SQLName.quoted($0))" }.joined()
        let key = SQLName.quoted(entity.key)
        let statement = try connection.statement(
            """
            SELECT t.\(key), r.revision\(columns) FROM \(SQLName.quoted(entity.name)) AS t \
            JOIN martlet_records AS r ON r.type = \(numbers[type]) AND r.id = t.\(key) \
            WHERE 1\(keys.condition("t.\(key)")) ORDER BY t.\(key)
            """)
        keys.bind(to: statement)
        defer { statement.reset() }
        while try statement.step() {
            try body(
                statement.recordID(0), statement.integer(1), list.attributes(of: statement, from: 2)
            )
        }
    }

    /// Returns the keys of a type's next records.
    /// - Parameters:
    ///   - after: The key of the record before; nil to start with the first.
    ///   - limit: The most records.
    package func keys(
        of type: Int, after: RecordID?, limit: Int
    ) throws -> (keys: SnapshotKeys, count: Int) {
        let entity = schema.types[type]
        let key = SQLName.quoted(entity.key)
        var keys = SnapshotKeys(after: after)
        let statement = try connection.statement(
            """
            SELECT \(key), count(*) OVER () FROM (
                SELECT \(key) FROM \(SQLName.quoted(entity.name)) \
                WHERE 1\(keys.condition(key)) ORDER BY \(key) LIMIT ?3)
            ORDER BY \(key) DESC LIMIT 1
            """)
        keys.bind(to: statement)
        statement.bind(3, integer: Int64(limit))
        defer { statement.reset() }
        guard try statement.step() else { return (keys, 0) }
        let count = Int(statement.integer(1))
        // If there are fewer than the limit, these are the last.
        if count == limit { keys.last = try statement.recordID(0) }
        return (keys, count)
    }

    private func verify(_ type: EntityType, number: Int64) throws {
        guard let account = description.types.first(where: { $0.name == type.name }) else {
            throw SnapshotError.damaged("a type has no count")
        }
        let table = SQLName.quoted(type.name)
        let rows = try connection.integer("SELECT count(*) FROM \(table)")
        // Ids that the server assigned are positive; temporary ones never leave a device.
        let key = "t.\(SQLName.quoted(type.key))"
        let isKey = type.keyKind == .integer ? "\(key) > 0" : "typeof(\(key)) = 'text'"
        var hasher = RowHasher(type: type)
        let known = try hasher.listed(
            on: connection, number: number,
            where: """
                \(isKey) AND typeof(r.revision) = 'integer' \
                AND r.revision BETWEEN 1 AND \(description.revision)
                """)
        guard rows == account.records, known.count == account.records else {
            throw SnapshotError.damaged("records of a type are missing or too many")
        }
        guard known == account.hash else {
            throw SnapshotError.damaged("records of a type are not as they were")
        }
    }

    private static func judged(_ error: any Error) -> any Error {
        switch error {
        case let error as SQLiteError where error.isCorrupt || error.isStatementError:
            SnapshotError.damaged("it is no sound database")
        case let error as SQLiteError where error.isMismatch:
            SnapshotError.damaged("it holds values no server sends")
        case is SchemaError: SnapshotError.damaged("it has tables that cannot be synchronised")
        default: error
        }
    }
}

@available(*, unavailable)
extension SnapshotReader: Sendable {}

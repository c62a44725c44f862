internal import MartletModel
internal import MartletProtocol
internal import SQLiteKit

/// Checks that a database has the form of a snapshot, and reads its description of itself.
struct SnapshotForm {
    let connection: Connection

    /// Checks the header, the objects and the format.
    /// - Throws: `SnapshotError`, `SQLiteError`.
    func check() throws {
        guard try connection.integer("PRAGMA application_id") == SnapshotFormat.applicationID else {
            throw SnapshotError(
                .noSnapshot, "The file is no snapshot; give one that a Martlet server made.")
        }
        try checkObjects()
        let format = try connection.integer(
            "SELECT value FROM martlet_snapshot WHERE name = 'format'")
        guard let format, format > 0 else { throw SnapshotError.damaged("it has no format") }
        guard format == SnapshotFormat.number else {
            throw SnapshotError(
                .newer,
                "The snapshot has the format \(format), this version reads"
                    + " \(SnapshotFormat.number); update the app.")
        }
    }

    /// Checks that there are only ordinary tables: no index of its own, no view, no trigger, no
    /// virtual table.
    private func checkObjects() throws {
        let objects = try connection.statement(
            """
            SELECT object.type, object.name, object.sql, listed.type \
            FROM main.sqlite_schema AS object LEFT JOIN pragma_table_list AS listed \
            ON listed.schema = 'main' AND listed.name = object.name
            """)
        var missing = Dictionary(
            uniqueKeysWithValues: SnapshotFormat.tables.map {
                ($0.name, "CREATE TABLE \($0.name) \($0.declaration)")
            })
        let isPlain = try objects.rows { (row) throws(SQLiteError) -> Bool in
            let name = row.text(1)
            switch row.text(0) {
            case "table" where name == "sqlite_sequence": return true
            case "table":
                guard row.text(3) == "table", !name.hasPrefix("sqlite_") else { return false }
                guard CreateScript.isOwn(name) else { return true }
                return missing.removeValue(forKey: name) == row.text(2)
            // An index that a UNIQUE or a key makes automatically has no statement.
            case "index": return row.isNull(2)
            default: return false
            }
        }
        guard isPlain.allSatisfy(\.self) else {
            throw SnapshotError.damaged("it has something in it that no snapshot has")
        }
        guard missing.isEmpty else { throw SnapshotError.damaged("a table is missing") }
    }

    /// Reads the description.
    /// - Throws: `SnapshotError`, `SQLiteError`.
    func description(of schema: Schema) throws -> SnapshotDescription {
        let statement = try connection.statement("SELECT name, value FROM martlet_snapshot")
        var values: [String: (text: String?, number: Int64?)] = [:]
        _ = try statement.rows { (row) throws(SQLiteError) in
            values[row.text(0)] = (row.storedText(1), row.storedInteger(1))
        }
        guard values.count == SnapshotFormat.Key.allCases.count + 2 * schema.types.count else {
            throw SnapshotError.damaged("it says too little or too much of itself")
        }
        func text(_ key: SnapshotFormat.Key) throws(SnapshotError) -> String {
            guard let text = values[key.rawValue]?.text, !text.isEmpty else {
                throw SnapshotError.damaged("“\(key.rawValue)” is missing")
            }
            return text
        }
        func signed(_ key: String) throws(SnapshotError) -> Int64 {
            guard let number = values[key]?.number else {
                throw SnapshotError.damaged("a number is missing")
            }
            return number
        }
        func number(_ key: String) throws(SnapshotError) -> Int64 {
            let number = try signed(key)
            guard number >= 0 else {
                throw SnapshotError.damaged("a number is missing")
            }
            return number
        }
        let description = SnapshotDescription(
            dataSet: try text(.dataSet), revision: try number(SnapshotFormat.Key.revision.rawValue),
            lineage: try text(.lineage), schema: try text(.schema), part: try text(.part),
            parts: try text(.parts).split(separator: "\n", omittingEmptySubsequences: false)
                .map(String.init),
            types: try schema.types.map { (type) throws(SnapshotError) in
                .init(
                    name: type.name,
                    hash: RangeHash(
                        count: try number(SnapshotFormat.countKey(type.name)),
                        sum: UInt64(
                            bitPattern: try signed(SnapshotFormat.hashKey(type.name)))))
            })
        guard description.schema == schema.fingerprint else {
            throw SnapshotError.damaged("its tables are not those it names")
        }
        guard description.parts.contains(description.part),
            description.parts.allSatisfy(SnapshotFormat.isPartName),
            Set(description.parts).count == description.parts.count,
            max(description.dataSet.utf8.count, description.lineage.utf8.count) <= Limits.nameBytes
        else { throw SnapshotError.damaged("its names cannot be") }
        return description
    }

    /// Reads the number of each type.
    /// - Throws: `SnapshotError`, `SQLiteError`.
    func numbers(of schema: Schema) throws -> [Int64] {
        let statement = try connection.statement("SELECT name, number FROM martlet_types")
        let listed = try statement.rows { (row) throws(SQLiteError) in (row.text(0), row.integer(1))
        }
        let numbers = Dictionary(listed, uniquingKeysWith: { first, _ in first })
        guard numbers.count == schema.types.count else {
            throw SnapshotError.damaged("its list of types is not that of its tables")
        }
        return try schema.types.map { (type) throws(SnapshotError) in
            guard let number = numbers[type.name] else {
                throw SnapshotError.damaged("a type has no number")
            }
            return number
        }
    }
}

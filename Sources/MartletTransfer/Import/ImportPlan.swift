package import MartletModel
internal import MartletProtocol

/// The plan of an import: all sources, checked, with parents before children.
package struct ImportPlan: Sendable {
    /// One checked source.
    package struct Table: Sendable {
        package let source: any ImportSource
        package let type: EntityType
        package let recordCount: Int
        /// A hash that identifies the content.
        package let fingerprint: String
        /// A hash of the records that an earlier import has written; nil if there was none, or if the source has
        /// fewer.
        let written: String?
    }

    /// The sources in the order of their import.
    package let tables: [Table]

    /// The number of records of all sources.
    package var recordCount: Int { tables.reduce(0) { $0 + $1.recordCount } }

    /// Reads all sources and checks every value and every reference, before anything is written.
    ///
    /// - Parameters:
    ///   - known: The given ids of earlier imports, by type. References may name them too.
    ///   - done: The number of records that an earlier import of each type has written.
    ///   - exists: Returns whether a record exists, for types without a source or an earlier
    ///     import.
    /// - Throws: `CSVFault` with the file, line and column of the first fault; `TransferError` if
    ///   the schema lacks the type of a source.
    /// - Complexity: O(*n*) time and memory for *n* records, because the given ids are held in
    ///   memory.
    package init(
        sources: [any ImportSource], schema: Schema, known: [String: Set<RecordID>] = [:],
        done: [String: Int] = [:],
        exists: (_ type: String, _ id: RecordID) throws -> Bool = { _, _ in false }
    ) throws {
        var check = ImportCheck(
            schema: schema, given: known, sourced: Set(sources.map(\.type)).union(known.keys))
        var tables: [Table] = []
        for type in try Self.ordered(sources, schema) {
            guard let source = sources.first(where: { $0.type == type.name }) else { continue }
            tables.append(try check.read(source, type, done: done[type.name], exists: exists))
        }
        try check.finish()
        self.tables = tables
    }

    /// Returns the types that have sources, each after the types that it refers to. Types in a
    /// cycle are in the schema's order.
    private static func ordered(
        _ sources: [any ImportSource], _ schema: Schema
    ) throws -> [EntityType] {
        let names = Set(sources.map(\.type))
        if let unknown = sources.first(where: { schema[$0.type] == nil }) {
            let types = schema.types.map(\.name).joined(separator: ", ")
            throw TransferError(
                "\(unknown.label) is named after no type of the schema. The types are \(types).")
        }
        var remaining = schema.types.filter { names.contains($0.name) }
        var ordered: Set<String> = []
        var result: [EntityType] = []
        while !remaining.isEmpty {
            let next =
                remaining.firstIndex { type in
                    type.references.allSatisfy {
                        $0.target == type.name || ordered.contains($0.target)
                            || !names.contains($0.target)
                    }
                } ?? remaining.startIndex
            let type = remaining.remove(at: next)
            ordered.insert(type.name)
            result.append(type)
        }
        return result
    }
}

extension [Value] {
    /// The approximate number of bytes of the values in a change set.
    var byteCount: Int {
        reduce(0) { sum, value in
            guard case .text(let text) = value else { return sum + 16 }
            return sum + text.utf8.count + 16
        }
    }
}

/// Reads sources, and keeps the ids that are needed to check their references.
private struct ImportCheck {
    let schema: Schema
    var given: [String: Set<RecordID>]
    /// The types with records of an import.
    let sourced: Set<String>
    private var forward: [Forward] = []

    /// A reference to a record that was not read yet.
    private struct Forward {
        let label: String
        let line: Int
        let column: String
        let target: String
        let id: RecordID
    }

    init(schema: Schema, given: [String: Set<RecordID>], sourced: Set<String>) {
        self.schema = schema
        self.given = given
        self.sourced = sourced
    }

    mutating func read(
        _ source: any ImportSource, _ type: EntityType, done: Int?,
        exists: (String, RecordID) throws -> Bool
    ) throws -> ImportPlan.Table {
        var cursor = try source.open(type)
        var count = 0
        var written: String?
        while let values = try cursor.next() {
            count += 1
            if count == done { written = String(cursor.fingerprint, radix: 16) }
            guard values.byteCount <= Limits.savedSetBytes else {
                throw CSVFault(
                    file: source.label, line: cursor.line,
                    message:
                        "the record has \(values.byteCount >> 20) MiB, and a change set at most"
                        + " \(Limits.savedSetBytes >> 20) MiB")
            }
            for (column, value) in zip(cursor.columns, values) {
                switch column {
                case .key: try addKey(value, source, type, cursor.line)
                case .attribute: break
                case .reference(let attribute, let reference):
                    guard let id = (schema[reference.target] ?? type).givenID(value) else {
                        continue
                    }
                    let link = Forward(
                        label: source.label, line: cursor.line, column: attribute.name,
                        target: reference.target, id: id)
                    try check(link, required: attribute.isRequired, exists: exists)
                }
            }
        }
        return ImportPlan.Table(
            source: source, type: type, recordCount: count,
            fingerprint: String(cursor.fingerprint, radix: 16), written: written)
    }

    private mutating func addKey(
        _ value: Value, _ source: any ImportSource, _ type: EntityType, _ line: Int
    ) throws {
        guard let id = type.givenID(value) else { return }
        guard given[type.name, default: []].insert(id).inserted else {
            throw CSVFault(
                file: source.label, line: line, column: type.key,
                message: "another record has this id; ids are unique within a type")
        }
    }

    private mutating func check(
        _ link: Forward, required: Bool, exists: (String, RecordID) throws -> Bool
    ) throws {
        if given[link.target]?.contains(link.id) ?? false { return }
        guard sourced.contains(link.target) else {
            guard try exists(link.target, link.id) else { throw dangling(link) }
            return
        }
        if required {
            throw CSVFault(
                file: link.label, line: link.line, column: link.column,
                message: "no \(link.target) record before this one has the id it refers to, and"
                    + " the column is required; add the record, or move it up")
        }
        forward.append(link)
    }

    /// Checks the references to records that had not been read yet.
    func finish() throws {
        for link in forward where !(given[link.target]?.contains(link.id) ?? false) {
            throw dangling(link)
        }
    }

    private func dangling(_ link: Forward) -> CSVFault {
        CSVFault(
            file: link.label, line: link.line, column: link.column,
            message: "no \(link.target) record has the id it refers to")
    }
}

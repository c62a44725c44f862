public import MartletModel
internal import MartletProtocol

/// What an import will do: every source read once and found good, parents before children.
public struct ImportPlan: Sendable {
    /// One source, checked.
    public struct Table: Sendable {
        public let source: any ImportSource
        public let type: EntityType
        public let recordCount: Int
        /// Names the content.
        public let fingerprint: String
    }

    /// In the order in which they are imported.
    public let tables: [Table]

    /// All records of all sources.
    public var recordCount: Int { tables.reduce(0) { $0 + $1.recordCount } }

    /// Reads all sources and checks every value and every reference, before anything is written.
    ///
    /// - Parameters:
    ///   - known: The ids given by earlier imports, by type; references may point at them too.
    ///   - exists: Whether a type that no source and no earlier import gives has a record.
    /// - Throws: `CSVFault` naming file, line and column of the first thing wrong; `TransferError`
    ///   for a source whose type the schema has not.
    /// - Complexity: O(*n*) time and memory, *n* records: the given ids are held.
    public init(
        sources: [any ImportSource], schema: Schema, known: [String: Set<RecordID>] = [:],
        exists: (_ type: String, _ id: RecordID) throws -> Bool = { _, _ in false }
    ) throws {
        var check = ImportCheck(
            schema: schema, given: known, sourced: Set(sources.map(\.type)).union(known.keys))
        var tables: [Table] = []
        for type in try Self.ordered(sources, schema) {
            guard let source = sources.first(where: { $0.type == type.name }) else { continue }
            tables.append(try check.read(source, type, exists: exists))
        }
        try check.finish()
        self.tables = tables
    }

    /// The types that have sources, each after the types it refers to, as far as there are no
    /// cycles; otherwise in the schema's order.
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
        var placed: Set<String> = []
        var result: [EntityType] = []
        while !remaining.isEmpty {
            let next =
                remaining.firstIndex { type in
                    type.references.allSatisfy {
                        $0.target == type.name || placed.contains($0.target)
                            || !names.contains($0.target)
                    }
                } ?? remaining.startIndex
            let type = remaining.remove(at: next)
            placed.insert(type.name)
            result.append(type)
        }
        return result
    }
}

extension [Value] {
    /// The approximate bytes of the values in a change set.
    var byteCount: Int {
        reduce(0) { sum, value in
            guard case .text(let text) = value else { return sum + 16 }
            return sum + text.utf8.count + 16
        }
    }
}

/// Reads sources and keeps what is needed to judge their references.
private struct ImportCheck {
    let schema: Schema
    var given: [String: Set<RecordID>]
    /// Types with records of an import.
    let sourced: Set<String>
    private var forward: [Forward] = []

    /// A reference to a record that has not been read yet.
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
        _ source: any ImportSource, _ type: EntityType,
        exists: (String, RecordID) throws -> Bool
    ) throws -> ImportPlan.Table {
        var cursor = try source.open(type)
        var count = 0
        while let values = try cursor.next() {
            count += 1
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
                    let place = Forward(
                        label: source.label, line: cursor.line, column: attribute.name,
                        target: reference.target, id: id)
                    try check(place, required: attribute.isRequired, exists: exists)
                }
            }
        }
        return ImportPlan.Table(
            source: source, type: type, recordCount: count,
            fingerprint: String(cursor.fingerprint, radix: 16))
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
        _ place: Forward, required: Bool, exists: (String, RecordID) throws -> Bool
    ) throws {
        if given[place.target]?.contains(place.id) ?? false { return }
        guard sourced.contains(place.target) else {
            guard try exists(place.target, place.id) else { throw dangling(place) }
            return
        }
        if required {
            throw CSVFault(
                file: place.label, line: place.line, column: place.column,
                message: "no \(place.target) record before this one has the id it refers to, and"
                    + " the column is required; add the record, or move it up")
        }
        forward.append(place)
    }

    /// Judges the references that pointed forward.
    func finish() throws {
        for place in forward where !(given[place.target]?.contains(place.id) ?? false) {
            throw dangling(place)
        }
    }

    private func dangling(_ place: Forward) -> CSVFault {
        CSVFault(
            file: place.label, line: place.line, column: place.column,
            message: "no \(place.target) record has the id it refers to")
    }
}

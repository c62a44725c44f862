public import Foundation
public import Martlet
public import MartletCore
import MartletProtocol
import MartletStore
import SQLiteRecords

/// Writes a device's records as CSV files, one for each type, all of one moment.
public struct Exporter: Sendable {
    private let client: MartletClient
    /// Rows held in memory at a time.
    private static let pageRows = 2_000

    public init(client: MartletClient) {
        self.client = client
    }

    /// What was written for one type.
    public struct Table: Hashable, Sendable {
        /// The entity type's name.
        public let type: String
        /// The file's name.
        public let file: String
        public let recordCount: Int
    }

    /// Writes the files; a file that is there is replaced as a whole once it is complete.
    ///
    /// Null is an empty field, and an empty text is `""`. Booleans are true and false, binary data
    /// is base64. In a column without a type, a text that looks like a number is quoted.
    /// - Parameters:
    ///   - types: The types to write; nil for all.
    ///   - folder: Made where it is missing.
    /// - Throws: `TransferError` for unknown types and for names that no file can have;
    ///   for a file that cannot be written.
    public func run(
        schema: Schema, types: [String]? = nil, folder: URL
    ) async throws -> [Table] {
        for name in types ?? [] where schema[name] == nil {
            let known = schema.types.map(\.name).joined(separator: ", ")
            throw TransferError("There is no type \(name). The types are \(known).")
        }
        let chosen = schema.types.filter { types?.contains($0.name) ?? true }
        try Self.checkNames(chosen)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return try await client.read { context in
            try chosen.map { type in
                do {
                    return try Self.write(type, context, folder)
                } catch let error as CocoaError {
                    throw Self.unwritten(type, folder, error)
                }
            }
        }
    }

    /// Returns the error for a file that cannot be written. Foundation's own words do not always name it.
    private static func unwritten(
        _ type: EntityType, _ folder: URL, _ error: CocoaError
    ) -> TransferError {
        let path = folder.appendingPathComponent("\(type.name).csv").path
        let advice =
            error.code == .fileWriteOutOfSpace
            ? "Its disk is full. Free some space, or name another folder, and run it again."
            : "\(error.localizedDescription) Check the folder and your rights to it."
        return TransferError("The file \(path) cannot be written. \(advice)")
    }

    /// Refuses names that are paths. The schema may come from a server, and no server may choose
    /// where files are written.
    private static func checkNames(_ types: [EntityType]) throws {
        for type in types where type.name.utf8.contains(UInt8(ascii: "/")) {
            throw TransferError(
                "The type \(type.name) has a slash in its name, so no file can be named after it."
                    + " Name the other types, to export those.")
        }
    }

    private static func write(
        _ type: EntityType, _ context: ReadContext, _ folder: URL
    ) throws -> Table {
        let name = "\(type.name).csv"
        let target = folder.appendingPathComponent(name)
        let partial = folder.appendingPathComponent(name + ".partial")
        try Data().write(to: partial)
        let handle = try FileHandle(forWritingTo: partial)
        var writer = CSVWriter()
        let attributes = type.attributes.filter { !$0.isGenerated }
        writer.write(([type.key] + attributes.map(\.name)).map { CSVField($0) })
        var count = 0
        var last: SQLValue?
        while true {
            let rows = try page(type, attributes, context, after: last)
            for row in rows {
                let fields = zip(row.values, [nil] + attributes).map(Self.field)
                writer.write(fields)
            }
            try handle.write(contentsOf: Data(writer.take()))
            count += rows.count
            guard rows.count == pageRows, let key = rows.last?.values.first else { break }
            last = key
        }
        try handle.close()
        if FileManager.default.fileExists(atPath: target.path) {
            try FileManager.default.removeItem(at: target)
        }
        try FileManager.default.moveItem(at: partial, to: target)
        return Table(type: type.name, file: name, recordCount: count)
    }

    private static func page(
        _ type: EntityType, _ attributes: [Attribute], _ context: ReadContext, after last: SQLValue?
    ) throws -> [RecordValues] {
        let key = SQLName.quoted(type.key)
        let columns = ([key] + attributes.map { SQLName.quoted($0.name) }).joined(separator: ", ")
        let from = "FROM \(SQLName.quoted(type.name))"
        let order = "ORDER BY \(key) LIMIT \(pageRows)"
        guard let last else { return try context.rows("SELECT \(columns) \(from) \(order)") }
        return try context.rows(
            "SELECT \(columns) \(from) WHERE \(key) > ? \(order)", [last])
    }

    private static func field(_ value: SQLValue, _ attribute: Attribute?) -> CSVField {
        switch (value, attribute?.kind) {
        case (.null, _): CSVField("")
        case (.integer(let number), .boolean) where number == 0 || number == 1:
            CSVField(number == 0 ? "false" : "true")
        case (.integer(let number), _): CSVField(String(number))
        case (.real(let number), .numeric) where number.isFinite:
            CSVField(DecimalText.text(number))
        case (.real(let number), _): CSVField(String(number))
        case (.text(let text), .any) where !text.isEmpty: FieldValue.untypedField(text)
        case (.text(let text), _): CSVField(text, isQuoted: text.isEmpty)
        case (.blob(let bytes), _):
            CSVField(Data(bytes).base64EncodedString(), isQuoted: bytes.isEmpty)
        }
    }
}

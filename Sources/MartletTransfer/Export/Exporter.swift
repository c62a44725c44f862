package import Foundation
package import Martlet
package import MartletModel
import MartletStore
import SQLiteRecords
import SystemKit

/// Writes a device's records as CSV files, one for each type, in the state of one moment.
package struct Exporter: Sendable {
    private let client: MartletClient
    /// The number of rows in memory at a time.
    private static let pageRows = 2_000

    package init(client: MartletClient) {
        self.client = client
    }

    /// The result for one type.
    package struct Table: Hashable, Sendable {
        /// The entity type's name.
        package let type: String
        /// The file's name.
        package let file: String
        package let recordCount: Int
        /// A sentence for each text that is not UTF-8, and so is written as base64. It names the type
        /// and the key. At most 100.
        package let unreadable: [String]
    }

    /// Writes the files. An existing file is replaced as a whole once the new one is complete.
    ///
    /// Null is an empty field, and an empty text is `""`. Booleans are true and false, binary data
    /// and text that is not UTF-8 are base64. In a column without a type, a text that looks like a number is quoted.
    /// - Parameters:
    ///   - types: The types to write; nil for all.
    ///   - folder: The folder for the files, which is created if it is missing.
    /// - Throws: `TransferError` for unknown types and for names that no file can have, and if the
    ///   device's own file, a folder or a link has the name of a file; nothing is written then.
    ///   Also `TransferError` if the folder cannot be created or a file cannot be written.
    package func run(
        schema: Schema, types: [String]? = nil, folder: URL
    ) async throws -> [Table] {
        for name in types ?? [] where schema[name] == nil {
            let known = schema.types.map(\.name).joined(separator: ", ")
            throw TransferError("There is no type \(name). The types are \(known).")
        }
        let chosen = schema.types.filter { types?.contains($0.name) ?? true }
        try Self.checkNames(chosen)
        let own = try await client.read { context in
            try context.rows("SELECT file FROM pragma_database_list WHERE name = 'main'").first?
                .values.first
        }
        if case .text(let path) = own { try Self.check(folder, isNotOf: path, chosen) }
        try Self.checkTargets(chosen, folder)
        try Self.make(folder)
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

    private static let endings = [".csv", ".csv.partial"]

    /// Throws an error if a file of the export would replace the device's file, or one of SQLite's
    /// files next to it.
    private static func check(
        _ folder: URL, isNotOf device: String, _ types: [EntityType]
    ) throws {
        let own = Set(["", "-wal", "-shm", "-journal"].compactMap { FileIdentity(device + $0) })
        for type in types {
            for ending in endings {
                let path = folder.appendingPathComponent(type.name + ending).path
                guard let identity = FileIdentity(path), own.contains(identity) else { continue }
                throw TransferError(
                    "\(path) is the device's own file. Export into another folder.")
            }
        }
    }

    /// The identity of a file, whichever of its names is used.
    private struct FileIdentity: Hashable {
        let disk: UInt64
        let number: UInt64

        init?(_ path: String) {
            let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
            let facts = try? FileManager.default.attributesOfItem(atPath: resolved)
            guard let disk = facts?[.systemNumber] as? NSNumber,
                let number = facts?[.systemFileNumber] as? NSNumber
            else { return nil }
            self.disk = disk.uint64Value
            self.number = number.uint64Value
        }
    }

    /// Refuses to replace anything except a file: a folder, a link or a pipe is never replaced.
    private static func checkTargets(_ types: [EntityType], _ folder: URL) throws {
        for type in types {
            for ending in endings {
                let target = folder.appendingPathComponent(type.name + ending)
                let path = target.path
                guard let kind = kind(path), kind != .typeRegular,
                    // Writing to /dev/null replaces nothing.
                    Self.kind(target.resolvingSymlinksInPath().path) != .typeCharacterSpecial
                else { continue }
                let found =
                    switch kind {
                    case .typeDirectory: "a folder"
                    case .typeSymbolicLink: "a link"
                    default: "no ordinary file"
                    }
                throw TransferError(
                    "\(path) is \(found), and a file of that name is to be written."
                        + " Export into another folder, or rename this one.")
            }
        }
    }

    private static func kind(_ path: String) -> FileAttributeType? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.type]) as? FileAttributeType
    }

    private static func make(_ folder: URL) throws {
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        } catch {
            throw TransferError(
                "There is no folder \(folder.path), and none can be made there. Name a folder that you"
                    + " may write to.")
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
        var last: PageCursor?
        var unreadable: [String] = []
        while true {
            let rows = try page(type, attributes, context, after: last)
            for row in rows {
                writer.write(zip(row.values, [nil] + attributes).map(Self.field))
                guard let first = row.unreadable.first, unreadable.count < mostNotes else {
                    continue
                }
                unreadable.append(
                    "\(type.name) \(row.name): column “\(first)” holds text that is not UTF-8."
                        + " It is written as base64.")
            }
            try handle.write(contentsOf: Data(writer.take()))
            count += rows.count
            guard rows.count == pageRows else { break }
            last = rows.last?.cursor
        }
        // Without this, a power failure could leave an empty file in place of the replaced one.
        try handle.synchronize()
        try handle.close()
        // This replaces a file, and never a folder.
        do {
            try Folder(path: folder.path).rename(name + ".partial", to: name)
        } catch {
            try? FileManager.default.removeItem(at: partial)
            throw TransferError(
                "\(target.path) cannot be replaced. Export into another folder, or rename this one."
            )
        }
        return Table(type: type.name, file: name, recordCount: count, unreadable: unreadable)
    }

    private static let mostNotes = 100

    /// The key of a row, after which the next page begins.
    private struct PageCursor {
        let key: SQLValue
        /// Whether the key's bytes are those of a text.
        let isTextBytes: Bool
    }

    private struct ReadRow {
        var values: [SQLValue] = []
        /// The columns with texts that are not UTF-8; their values are the bytes.
        var unreadable: [String] = []
        var hasReadableKey = true

        var cursor: PageCursor? {
            values.first.map { PageCursor(key: $0, isTextBytes: !hasReadableKey) }
        }

        /// The key as messages show it.
        var name: String {
            switch values.first {
            case .integer(let id): String(id)
            case .text(let id): String(id.prefix(64))
            case .blob(let bytes):
                "x'"
                    + bytes.prefix(32).map {
                        String(UInt16($0) + 256, radix: 16).dropFirst()
                    }.joined() + "'"
            default: "without a key"
            }
        }
    }

    private static func page(
        _ type: EntityType, _ attributes: [Attribute], _ context: ReadContext,
        after last: PageCursor?
    ) throws -> [ReadRow] {
        let names = [type.key] + attributes.map(\.name)
        let key = SQLName.quoted(type.key)
        let bound = last?.isTextBytes == true ? "CAST(? AS TEXT)" : "?"
        let rest = """
            FROM \(SQLName.quoted(type.name)) \(last == nil ? "" : "WHERE \(key) > \(bound)")
            ORDER BY \(key) LIMIT \(pageRows)
            """
        let arguments = last.map { [$0.key] } ?? []
        let columns = names.map { SQLName.quoted($0) }
        do {
            return try context.rows("SELECT \(columns.joined(separator: ", ")) \(rest)", arguments)
                .map { ReadRow(values: $0.values) }
        } catch let error as StoreError where error.kind == .value {
            // If a text is not UTF-8, all texts are read as bytes.
            let pairs = columns.map {
                "iif(typeof(\($0)) = 'text', CAST(\($0) AS BLOB), \($0)), typeof(\($0)) = 'text'"
            }
            return try context.rows("SELECT \(pairs.joined(separator: ", ")) \(rest)", arguments)
                .map { row(of: $0.values, names) }
        }
    }

    /// Returns a row from pairs of a value and of whether its bytes are a text's.
    private static func row(of pairs: [SQLValue], _ names: [String]) -> ReadRow {
        var row = ReadRow()
        for (index, name) in names.enumerated() {
            let value = pairs[2 * index]
            guard case .blob(let bytes) = value, pairs[2 * index + 1] == .integer(1) else {
                row.values.append(value)
                continue
            }
            let text = String(decoding: bytes, as: UTF8.self)
            if text.utf8.elementsEqual(bytes) {
                row.values.append(.text(text))
            } else {
                row.values.append(value)
                row.unreadable.append(name)
                if index == 0 { row.hasReadableKey = false }
            }
        }
        return row
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

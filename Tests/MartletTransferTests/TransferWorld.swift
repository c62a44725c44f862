import Foundation
import Martlet
import MartletDevice
import MartletModel
import MartletProtocol
import MartletServerCore
import MartletStore
import MartletTesting
import MartletTransfer
import SQLiteKit
import SmallWorlds
import TestFolders
import Testing

/// Tables that chance declares, and what is in them, in a folder of their own.
struct TransferWorld {
    let seed: UInt64
    let script: String
    let folder: TemporaryFolder
    var odd: OddValues
    private var history = ""
    var story: String { "seed \(seed)\n\(script)\n\(history)" }

    init(seed: UInt64) throws {
        self.seed = seed
        odd = OddValues(random: SeededRandom(seed: seed &* 0x1234_5678_9abc_def1 &+ 5))
        folder = try TemporaryFolder()
        let schema = RandomSchema(using: &odd.random)
        script = schema.script + "\n" + Self.table(beside: schema, &odd)
    }

    init(seed: UInt64, script: String) throws {
        self.seed = seed
        odd = OddValues(random: SeededRandom(seed: seed &* 0x1234_5678_9abc_def1 &+ 5))
        folder = try TemporaryFolder()
        self.script = script
    }

    /// A table with a column of each kind, under odd names, and without constraints, so that it takes all.
    private static func table(beside schema: RandomSchema, _ odd: inout OddValues) -> String {
        var taken = Set(schema.tables.map { $0.name.lowercased() })
        let name = odd.random.chance(10) ? odd.random.one(of: OddValues.paths) : odd.name(&taken)
        taken = []
        let key = odd.name(&taken)
        let isText = odd.random.chance(50)
        var columns = ["\(RandomTable.quoted(key)) \(isText ? "TEXT" : "INTEGER") PRIMARY KEY"]
        let kinds = [
            "TEXT", "INTEGER", "REAL", "BOOLEAN", "", "BLOB", "NUMERIC", "DECIMAL TEXT", "DATE",
            "JSON",
            "TEXT NOT NULL DEFAULT 'd'",
        ]
        for kind in kinds.shuffled(using: &odd.random).prefix(
            Int.random(in: 0...9, using: &odd.random))
        {
            columns.append("\(RandomTable.quoted(odd.name(&taken))) \(kind)")
        }
        if odd.random.chance(40) {
            let target =
                odd.random.chance(50)
                ? (name, isText) : (schema.tables[0].name, schema.tables[0].isText)
            columns.append(
                "\(RandomTable.quoted(odd.name(&taken))) \(target.1 ? "TEXT" : "INTEGER")"
                    + " REFERENCES \(RandomTable.quoted(target.0))")
        }
        return "CREATE TABLE \(RandomTable.quoted(name))(\(columns.joined(separator: ", ")));"
    }

    /// Whether a message is of a unique index over a reference for which null is a value like others.
    func countsNull(_ message: String) -> Bool {
        let index = #/CREATE UNIQUE INDEX (u\d_\d) ON "(?:[^"]|"")+"\(ifnull\(("(?:[^"]|"")+"), /#
            .matchingSemantics(.unicodeScalar)
        return script.matches(of: index).contains { match in
            message.contains("index '\(match.1)'")
                && ["TEXT", "INTEGER"].contains {
                    script.contains("\(match.2) \($0) REFERENCES")
                }
        }
    }

    // MARK: - Clients

    func path(_ name: String) -> String { folder.path + "/\(name)/device.sqlite" }

    func client(_ name: String) async throws -> MartletClient {
        try FileManager.default.createDirectory(
            atPath: folder.path + "/\(name)", withIntermediateDirectories: true)
        return try await MartletClient.open(path: path(name), schema: script)
    }

    // MARK: - Rows

    /// Fills the tables. What a constraint refuses is left out.
    mutating func fill(_ client: MartletClient) async throws {
        let schema = try await client.read { $0.schema }
        var keys: [String: [RecordID]] = [:]
        for type in schema.types {
            for _ in 0..<Int.random(in: 0...8, using: &odd.random) {
                let values = type.attributes.filter { !$0.isGenerated }.compactMap { attribute in
                    value(of: attribute, type, keys).map { (attribute.name, $0) }
                }
                let id = type.keyKind == .text ? odd.text() + "k\(odd.random.next() % 1_000)" : nil
                let record = RecordValues(names: values.map(\.0), values: values.map(\.1))
                do {
                    let made = try await client.write { context in
                        try context.insert(type.name, record, id: id)
                    }
                    keys[type.name, default: []].append(made)
                } catch let error as StoreError {
                    guard [.constraint, .value].contains(error.kind) else { throw error }
                }
            }
        }
    }

    private mutating func value(
        of attribute: Attribute, _ type: EntityType, _ keys: [String: [RecordID]]
    ) -> SQLValue? {
        if let reference = type.reference(of: attribute.name) {
            return keys[reference.target]?.randomElement(using: &odd.random)?.sqlValue
        }
        if odd.random.chance(15) { return attribute.isRequired ? nil : .null }
        return switch attribute.kind {
        case .text: .text(odd.text())
        case .integer: .integer(odd.integer())
        case .real: .real(odd.real())
        case .boolean: .integer(odd.random.chance(50) ? 1 : 0)
        case .blob: .blob(odd.bytes())
        case .numeric: .text(odd.decimal(digits: attribute.keepsDigits ? 40 : 15))
        case .any:
            odd.random.one(of: [
                .integer(odd.integer()), .real(odd.real()), .text(odd.text()),
                .text(odd.decimal(digits: 9)),
            ])
        }
    }

    // MARK: - Comparing

    /// The rows as texts, in which references and keys that are made anew are what they lead to.
    static func described(_ schema: Schema, _ rows: Rows) -> [String] {
        func row(_ type: EntityType, _ key: String, _ depth: Int) -> String {
            guard let values = rows[type.name]?[key] else { return "nothing" }
            guard depth < 4 else { return "…" }
            let columns = type.attributes.filter { !$0.isGenerated }
            let texts = zip(columns, values).map { column, value in
                guard let reference = type.reference(of: column.name), value != "NULL",
                    let target = schema[reference.target]
                else { return value }
                return "(" + row(target, value, depth + 1) + ")"
            }
            return (type.keyKind == .text ? [key] + texts : texts).joined(separator: "|")
        }
        return schema.types.flatMap { type in
            (rows[type.name] ?? [:]).keys.map { "\(type.name): " + row(type, $0, 0) }
        }.sorted()
    }

    typealias Rows = [String: [String: [String]]]

    /// The rows by table and key, as SQL writes the values.
    static func rows(_ schema: Schema, _ select: (String) throws -> [[String]]) throws -> Rows {
        var all: Rows = [:]
        for type in schema.types {
            let names = [type.key] + type.attributes.filter { !$0.isGenerated }.map(\.name)
            let values = names.map { "quote(\(RandomTable.quoted($0)))" }.joined(separator: ", ")
            let found = try select("SELECT \(values) FROM \(RandomTable.quoted(type.name))")
            all[type.name] = Dictionary(
                uniqueKeysWithValues: found.map { ($0[0], Array($0.dropFirst())) })
        }
        return all
    }

    static func described(_ client: MartletClient) async throws -> [String] {
        try await client.read { context in
            let rows = try rows(context.schema) { select in
                try context.rows(select).map { row in
                    row.values.map { value in
                        if case .text(let text) = value { text } else { "?" }
                    }
                }
            }
            return described(context.schema, rows)
        }
    }

    // MARK: - The server

    /// Has a server with the same tables take all that a closed client has saved.
    /// - Returns: What the server has then.
    func served(_ name: String) throws -> [String] {
        var pace = SmallPace()
        pace.answerBytes = Limits.answerBytes
        pace.sliceRecords = 1_000
        let world = try SmallWorld(DiskName.next("taking"), script: script, pace: pace)
        let device = try world.device(ofFileAt: path(name), script: script)
        try device.store.endLeases()
        try device.sync(with: world.server)
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        let withheld = try device.store.withheld().map(\.message)
        #expect(device.errors.isEmpty, "\(device.errors) \(story)")
        #expect(parked.isEmpty, "the server refuses what was imported: \(parked) \(story)")
        #expect(withheld.isEmpty, "what was imported cannot be sent: \(withheld) \(story)")
        let connection = try world.server.connection()
        let schema = try device.store.local.schema
        let rows = try Self.rows(schema) { select in
            let statement = try connection.prepare(select)
            return try statement.rows { (row) throws(SQLiteError) in
                (0..<statement.columnCount).map { row.text($0) }
            }
        }
        return Self.described(schema, rows)
    }

    // MARK: - Files

    /// Writes a file of one of the tables, as somebody else may have made it.
    mutating func writeFile(of schema: Schema) throws {
        let types = schema.types.filter { !$0.name.utf8.contains(UInt8(ascii: "/")) }
        guard let type = types.randomElement(using: &odd.random) else { return }
        let attributes = type.attributes.filter { attribute in
            !attribute.isGenerated && type.reference(of: attribute.name) == nil
                && (attribute.isRequired || odd.random.chance(80))
        }
        var lines = [
            ([type.key] + attributes.map(\.name)).map { odd.field($0) }.joined(separator: ",")
        ]
        for row in 0..<Int.random(in: 1...3, using: &odd.random) {
            let fields = attributes.map { attribute in
                let text =
                    odd.random.chance(40)
                    ? odd.typed()
                    : Self.text(value(of: attribute, type, [:]) ?? .null, attribute.kind)
                return odd.field(text)
            }
            lines.append((["\(row)"] + fields).joined(separator: ","))
        }
        let path = folder.path + "/in"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let text = lines.joined(separator: "\n") + "\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(path)/\(type.name).csv"))
        history = text
    }

    private static func text(_ value: SQLValue, _ kind: AttributeKind) -> String {
        switch value {
        case .null: ""
        case .integer(let number) where kind == .boolean: String(number == 1)
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): text
        case .blob(let bytes): Data(bytes).base64EncodedString()
        }
    }

    /// All files under the folder, by their paths.
    func files() throws -> Set<String> {
        let found = FileManager.default.enumerator(atPath: folder.path)?.allObjects ?? []
        return Set(found.compactMap { $0 as? String })
    }
}

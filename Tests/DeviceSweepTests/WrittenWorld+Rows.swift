import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Programs change single rows over a longer time, while the device saves, looks and exchanges.
extension WrittenWorld {
    /// Another program takes rows out and puts them back from a copy of its own, as an undo does. The device may
    /// do something between the two.
    func takeOutAndPutBack() throws {
        let table = random.one(of: schema.tables)
        let copy = try Witness.read(table, device.connection())
        let keys = copy.keys.sorted().shuffled(using: &random)
            .prefix(Int.random(in: 1...3, using: &random))
        guard !keys.isEmpty else { return }
        let list = keys.joined(separator: ", ")
        run(
            "PRAGMA foreign_keys = ON; DELETE FROM \(table.quoted) WHERE \(table.quotedKey) IN (\(list))"
        )
        for _ in 0..<Int.random(in: 0...2, using: &random) { try doSomething() }
        let names = ([table.quotedKey] + table.columns.map(\.quoted)).joined(separator: ", ")
        let verb = random.one(of: ["INSERT", "INSERT", "INSERT OR IGNORE", "REPLACE"])
        for key in keys {
            // SQLite quotes an infinity as a word that it does not read.
            let values = ([key] + (copy[key] ?? [])).map { $0.replacing("Inf", with: "9e999") }
                .joined(separator: ", ")
            run(
                "PRAGMA foreign_keys = ON; \(verb) INTO \(table.quoted)(\(names)) VALUES (\(values))"
            )
            if random.chance(20) { try doSomething() }
        }
    }

    /// Has the device do something in between: it takes the notes, is looked at, or exchanges.
    private func doSomething() throws {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: try device.write { _ in }
        case 1: try look()
        default:
            try sync()
            history.append("-- exchanged")
        }
    }

    /// Another program writes a value at an edge of what SQLite stores.
    func writeEdge() throws {
        let table = random.one(of: schema.tables)
        guard let column = table.columns.filter({ $0.target == nil }).randomElement(using: &random)
        else { return }
        let value = random.one(of: Self.edges(of: column.kind))
        let offset = Int.random(in: 0..<4, using: &random)
        run(
            """
            PRAGMA foreign_keys = ON; UPDATE OR IGNORE \(table.quoted) SET \(column.quoted) = \(value) WHERE \(table.quotedKey) =
            (SELECT \(table.quotedKey) FROM \(table.quoted) LIMIT 1 OFFSET \(offset))
            """)
    }

    private static func edges(of kind: RandomColumn.Kind) -> [String] {
        let reals = [
            "0.1 + 0.2", "1.0 / 3", "1e23", "9007199254740993.0", "-9223372036854775808.0",
            "1.7976931348623157e308", "2.2250738585072014e-308", "123456789.123456789", "-1e-300",
        ]
        let integers = [
            "9223372036854775807", "-9223372036854775808", "9007199254740993", "4294967296", "-1",
        ]
        let texts = [
            "'0.30000000000000004'", "'12345678901234567890'", "' 1'", "'1 '", "'0x10'", "'1e400'",
            "'-0'", "'+1'", "'1_000'", "'{\"a\": 0.10}'", "'[]'", "'null'", "'true'",
            "char(65279) || 'bom'", "char(1114111)", "char(1, 31, 127, 133, 8232)", "char(13, 10)",
        ]
        return switch kind {
        case .text: texts
        case .integer: integers
        case .real: reals + integers.prefix(3)
        case .boolean: ["0", "1", "TRUE", "1.0", "'1'"]
        case .untyped: reals + integers + texts
        case .blob: ["zeroblob(300)", "x'80'", "x'efbbbf'", "x'eda080'"]
        }
    }

    /// Another program writes what no set can carry to a record of the server's, others go on with the record, and
    /// in the end it is given a value that can be sent.
    func withholdAndMend() throws {
        let table = random.one(of: schema.tables)
        let columns = table.columns.filter { $0.target == nil }
        let served = try rows(world.server.connection())[table.name] ?? [:]
        let keys = try Witness.read(table, device.connection()).keys.filter { served[$0] != nil }
        guard let column = columns.randomElement(using: &random),
            let key = keys.sorted().randomElement(using: &random)
        else { return }
        func write(_ column: RandomColumn, odd: Int, on other: SmallDevice? = nil) {
            let value = column.kind.literal(using: &random, odd: odd)
            run(
                """
                PRAGMA foreign_keys = ON; UPDATE OR IGNORE \(table.quoted) SET \(column.quoted) = \(value)
                WHERE \(table.quotedKey) = \(key)
                """, on: other)
        }
        write(column, odd: 100)
        for _ in 0..<Int.random(in: 2...4, using: &random) {
            switch Int.random(in: 0..<6, using: &random) {
            case 0..<2:
                let written = random.chance(50) ? column : random.one(of: columns)
                write(written, odd: 0, on: colleague)
                try work(of: colleague, writes: false)
                isDisturbed = true
            case 2: write(random.one(of: columns), odd: 0)
            case 3: write(random.one(of: columns), odd: 100)
            default: try doSomething()
            }
        }
        write(column, odd: 0)
    }

    /// Others hand values on between a record that the device's tables refuse and some that they take.
    func handOnHidden() throws {
        if try device.store.quarantined().isEmpty {
            try work(of: colleague)
            try sync()
        }
        guard let hidden = try device.store.quarantined().randomElement(using: &random),
            let table = schema.tables.first(where: { $0.name == hidden.type }),
            let column = table.columns.filter({ !$0.isRequired }).randomElement(using: &random)
        else { return }
        let own = table.isText ? "'\(hidden.id)'" : "\(hidden.id)"
        let keys = try Witness.read(table, colleague.connection()).keys.filter { $0 != own }
            .sorted().shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random))
        let list = ([own] + keys).joined(separator: ", ")
        let key = table.quotedKey
        run(
            """
            CREATE TEMP TABLE handed AS SELECT \(key) AS k, \(column.quoted) AS v FROM \(table.quoted)
            WHERE \(key) IN (\(list));
            BEGIN;
            UPDATE \(table.quoted) SET \(column.quoted) = NULL WHERE \(key) IN (\(list));
            UPDATE \(table.quoted) SET \(column.quoted) = (
                SELECT next.v FROM handed AS own JOIN handed AS next
                ON next.rowid = own.rowid % (SELECT count(*) FROM handed) + 1
                WHERE own.k = \(table.quoted).\(key)) WHERE \(key) IN (\(list));
            COMMIT
            """, on: colleague)
        try work(of: colleague, writes: false)
        isDisturbed = true
        if random.chance(50) { try sync() }
    }
}

import Foundation
import MartletModel
import MartletStore
import MartletTesting
import Synchronization

/// Something that an app's save does.
enum AppDeed: Sendable {
    case sql(String)
    case insert(table: RandomTable, key: SQLValue, RecordValues)
    /// Of the record at an offset among those that are there.
    case update(table: RandomTable, offset: Int, RecordValues)
    case upsert(table: RandomTable, offset: Int, RecordValues)
    case delete(table: RandomTable, offset: Int)

    var description: String {
        switch self {
        case .sql(let sql): sql
        case .insert(let table, let key, let values):
            "-- insert into \(table.name) \(key) \(values)"
        case .update(let table, let offset, let values):
            "-- update \(table.name) \(offset) \(values)"
        case .upsert(let table, let offset, let values):
            "-- upsert \(table.name) \(offset) \(values)"
        case .delete(let table, let offset): "-- delete \(table.name) \(offset)"
        }
    }

    /// - Returns: What hooks were told amiss.
    func perform(
        _ context: WriteContext, _ schema: RandomSchema, _ told: ToldWrites
    ) throws -> [String] {
        switch self {
        case .sql(let sql):
            try context.rows(sql)
            return []
        case .insert(let table, let key, let values):
            told.clear()
            let given = key == .null ? values : values.adding(table.key, key)
            let old = try Self.keys(of: table, context)
            let made = try PlainTable(table.name).insert(given, in: context)
            guard key != .null || !old.contains(SQLValue(made)) else {
                return ["a new record was given the key of another one, \(made)"]
            }
            let after = try Self.row(SQLValue(made), table, context)
            return told.faults(table, given: values, before: nil, after: after)
        case .update(let table, let offset, let values), .upsert(let table, let offset, let values):
            guard let key = try Self.key(at: offset, table, context) else { return [] }
            told.clear()
            let before = try Self.row(key, table, context)
            let given = values.adding(table.key, key)
            if case .update = self {
                guard try PlainTable(table.name).update(given, in: context) else {
                    // If the declaration passes an update over, SQLite says that it changed no row.
                    let mayPassOver = table.script.contains("ON CONFLICT IGNORE")
                    return mayPassOver ? [] : ["a record that is there was not found"]
                }
            } else {
                try PlainTable(table.name).upsert(given, in: context)
            }
            let after = try Self.row(key, table, context)
            return told.faults(table, given: values, before: before, after: after)
        case .delete(let table, let offset):
            guard let key = try Self.key(at: offset, table, context) else { return [] }
            let isDone =
                switch key {
                case .integer(let number):
                    try PlainTable(table.name).delete(number, in: context)
                case .text(let text): try PlainTable(table.name).delete(text, in: context)
                default: true
                }
            return isDone ? [] : ["a record that is there was not found"]
        }
    }

    private static func key(
        at offset: Int, _ table: RandomTable, _ context: ReadContext
    ) throws -> SQLValue? {
        try context.rows("SELECT \(table.quotedKey) FROM \(table.quoted) LIMIT 1 OFFSET \(offset)")
            .first?.values.first
    }

    private static func keys(
        of table: RandomTable, _ context: ReadContext
    ) throws -> [SQLValue] {
        try context.rows("SELECT \(table.quotedKey) FROM \(table.quoted)")
            .compactMap(\.values.first)
    }

    private static func row(
        _ key: SQLValue, _ table: RandomTable, _ context: ReadContext
    ) throws -> RecordValues? {
        try context.rows(
            "SELECT * FROM \(table.quoted) WHERE \(table.quotedKey) = ? COLLATE BINARY", [key]
        ).first
    }
}

/// What hooks are told of the last write, by column.
final class ToldWrites: Sendable {
    private enum Told: Sendable {
        case absent, null, value
    }

    private let last = Mutex<[String: Told]>([:])

    /// The writes that hooks were told of and that the table does not show.
    private let untrue = Mutex<[String]>([])

    func clear() {
        last.withLock { $0 = [:] }
        untrue.withLock { $0 = [] }
    }

    /// Checks that a record that a hook hears of after it was written is there.
    func check(_ write: RowWrite, _ schema: RandomSchema, _ context: ReadContext) throws {
        guard let table = schema.tables.first(where: { $0.name == write.table }),
            let key = write.key
        else { return }
        let found = try context.rows(
            "SELECT 1 FROM \(table.quoted) WHERE \(table.quotedKey) = ? COLLATE BINARY",
            [SQLValue(key)])
        guard found.isEmpty else { return }
        untrue.withLock { $0.append("a hook heard of \(key) of \(table.name), which is not there") }
    }

    func note(_ write: RowWrite, _ schema: RandomSchema) throws {
        guard let table = schema.tables.first(where: { $0.name == write.table }) else { return }
        for column in table.columns {
            let told = try Self.told(column, write)
            last.withLock { $0[column.name] = told }
        }
    }

    private static func told(_ column: RandomColumn, _ write: RowWrite) throws -> Told {
        func told<Value>(_ written: WrittenValue<Value>) -> Told {
            switch written {
            case .absent: .absent
            case .null: .null
            case .value: .value
            }
        }
        switch write.values?[column.name] {
        case .integer?: return told(try write.written(column.name, as: Int64.self))
        case .real?: return told(try write.written(column.name, as: Double.self))
        case .blob?: return told(try write.written(column.name, as: Data.self))
        default: return told(try write.written(column.name, as: String.self))
        }
    }

    /// Compares what hooks were told with what the write was given, and with what it did.
    func faults(
        _ table: RandomTable, given: RecordValues, before: RecordValues?, after: RecordValues?
    ) -> [String] {
        let told = last.withLock { $0 }
        let untrue = untrue.withLock { $0 }
        // Nothing is written of a record that names its key alone, nor of one that SQLite passes over.
        let isPassedOver = table.script.contains("ON CONFLICT IGNORE") && before == after
        guard !told.isEmpty, !isPassedOver, let after else { return untrue }
        return untrue
            + table.columns.filter { column in
                let (old, new) = (before?[column.name], after[column.name])
                return switch told[column.name] {
                case .absent?: given[column.name] != nil || before != nil && old != new
                case .null?: given[column.name] != .some(.null) || new != .some(.null)
                case .value?: given[column.name] == nil || new == nil || new == .some(.null)
                case nil: true
                }
            }.map { "a hook was told \(told[$0.name].map { "\($0)" } ?? "nothing") of \($0.name)" }
    }
}

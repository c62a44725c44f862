internal import MartletCore
internal import MartletProtocol
internal import SQLiteKit

/// The columns that capture's notes hold, as the file records them whenever capture is set up.
///
/// A note names no columns. If another program changes a table while notes wait, only this record tells which value
/// belongs to which column.
struct NotedColumns {
    let connection: Connection

    /// The columns of each type's notes, in order, by the type's number.
    struct Recorded {
        /// Types that had a table when capture was set up.
        var present: [Int64: [String]] = [:]
        /// Types whose table was gone then.
        var away: [Int64: [String]] = [:]
        /// The names that columns had before other programs renamed them, by their names of now.
        var homes: [Int64: [String: String]] = [:]

        /// Returns the columns of a type, whether its table was there or gone.
        func columns(_ number: Int64) -> [String]? { present[number] ?? away[number] }
    }

    private static let present = "columns:"
    private static let away = "away:"
    /// A separator that no name of a column contains.
    private static let separator: Character = "\n"
    /// Stands between a column's name and the one that it had before. No name of a column contains it.
    private static let formerly: Character = "\t"

    func recorded() throws(SQLiteError) -> Recorded {
        let rows = try connection.prepare(
            """
            SELECT name, value FROM main.martlet_state
            WHERE name GLOB '\(Self.present)*' OR name GLOB '\(Self.away)*'
            """)
        var recorded = Recorded()
        _ = try rows.rows { (row) throws(SQLiteError) -> Void in
            let name = row.text(0)
            let isPresent = name.hasPrefix(Self.present)
            let kind = isPresent ? Self.present : Self.away
            guard let number = Int64(name.dropFirst(kind.count)) else { return }
            var columns: [String] = []
            for column in row.text(1).split(separator: Self.separator) {
                let names = column.split(separator: Self.formerly).map(String.init)
                columns.append(names[0])
                if names.count > 1 { recorded.homes[number, default: [:]][names[0]] = names[1] }
            }
            if isPresent {
                recorded.present[number] = columns
            } else {
                recorded.away[number] = columns
            }
        }
        return recorded
    }

    /// Returns whether the file has, or had, a table for a type.
    func isKnown(_ number: Int64) throws(SQLiteError) -> Bool {
        try connection.integer(
            """
            SELECT 1 FROM main.martlet_state
            WHERE name IN ('\(Self.present)\(number)', '\(Self.away)\(number)')
            """) != nil
    }

    /// Returns whether the record is that of these types.
    func isRecorded(_ types: [EntityType], numbers: [Int64]) throws(SQLiteError) -> Bool {
        try recorded().present == Self.columns(types, numbers)
    }

    /// Records the columns of all types. What is known of types without a table stays.
    func record(_ types: [EntityType], numbers: [Int64]) throws(SQLiteError) {
        let wanted = Self.columns(types, numbers)
        let recorded = try recorded()
        for (number, columns) in recorded.present where wanted[number] == nil {
            try put(Self.away, number, columns, recorded.homes[number])
            try remove(Self.present, number)
        }
        for (number, columns) in wanted where recorded.present[number] != columns {
            // If a column got the name that another one had before, the app has said so.
            let homes = recorded.homes[number]?.filter { !columns.contains($0.value) }
            try put(Self.present, number, columns, homes)
            try remove(Self.away, number)
        }
    }

    /// Has the record follow the columns of a type to other names.
    /// - Parameter names: The names that the columns have now, by their names of before.
    func rename(_ names: [String: String], of number: Int64) throws(SQLiteError) {
        let recorded = try recorded()
        guard let columns = recorded.columns(number) else { return }
        var homes = recorded.homes[number] ?? [:]
        for (former, name) in names {
            let home = homes.removeValue(forKey: former) ?? former
            homes[name] = home == name ? nil : home
        }
        let kind = recorded.present[number] == nil ? Self.away : Self.present
        try put(kind, number, columns.map { names[$0] ?? $0 }, homes)
    }

    /// Refuses a column to which another program gave the name that another column of its table had: what the server
    /// sends under that name, and what was written under it here, may belong to either.
    /// - Throws: `StoreError` `.schema`.
    func check(_ moved: MovedTables) throws {
        let triggers = try CaptureTriggers.present(connection)
        guard !triggers.isEmpty else { return }
        let recorded = try recorded()
        let replaced = moved.replaced.map(\.number)
        let numbers = Set(recorded.present.keys).union(recorded.away.keys).subtracting(replaced)
        for number in numbers.sorted() {
            guard let columns = recorded.columns(number),
                let now = CaptureTriggers.noted(by: triggers, number)
            else { continue }
            let homes = recorded.homes[number] ?? [:]
            for (former, name) in zip(columns, now) where former != name {
                guard
                    columns.contains(name) || homes.contains(where: { $0 != former && $1 == name })
                else { continue }
                throw try refusal(former, name, number)
            }
        }
    }

    private func refusal(
        _ former: String, _ name: String, _ number: Int64
    ) throws(SQLiteError) -> StoreError {
        let find = try connection.prepare("SELECT name FROM main.martlet_types WHERE number = ?")
        find.bind(1, integer: number)
        defer { find.reset() }
        let table = try find.step() ? find.text(0) : ""
        return StoreError(
            .schema,
            "Another program has given the column “\(former)” of “\(table)” the name “\(name)”, which another"
                + " column had. Give each column its own name back (ALTER TABLE … RENAME COLUMN … TO …): until then"
                + " their values would be mixed up. What was written to them waits in the file.")
    }

    private static func columns(_ types: [EntityType], _ numbers: [Int64]) -> [Int64: [String]] {
        Dictionary(
            uniqueKeysWithValues: zip(numbers, types.map { CaptureTriggers.noted($0) }))
    }

    private func put(
        _ kind: String, _ number: Int64, _ columns: [String], _ homes: [String: String]?
    ) throws(SQLiteError) {
        let put = try connection.prepare("INSERT OR REPLACE INTO main.martlet_state VALUES (?, ?)")
        put.bind(1, text: "\(kind)\(number)")
        let lines = columns.map { name in
            homes?[name].map { "\(name)\(Self.formerly)\($0)" } ?? name
        }
        put.bind(2, text: lines.joined(separator: String(Self.separator)))
        try put.run()
    }

    private func remove(_ kind: String, _ number: Int64) throws(SQLiteError) {
        try connection.execute("DELETE FROM main.martlet_state WHERE name = '\(kind)\(number)'")
    }
}

/// How the notes under one number are read.
struct NoteForm {
    /// The position of the type whose records they are about.
    let index: Int
    /// For each value of a note, the position of its attribute; nil if the table has the column no more.
    let slots: [Int?]
    /// The values with which rows began in columns that the notes do not hold, by the attribute's position.
    let begun: [Int: Value]

    /// Notes that were made for the table as it is.
    init(_ type: EntityType, at index: Int) {
        self.index = index
        slots = type.attributes.indices.filter { !type.attributes[$0].isGenerated }
        begun = [:]
    }

    /// Notes that were made when the table had other columns.
    /// - Parameter noted: Their columns, under the names that these have now.
    init(_ type: EntityType, at index: Int, noted: [String], _ connection: Connection) throws {
        self.index = index
        slots = noted.map { name in
            type.index(ofAttribute: name).flatMap { type.attributes[$0].isGenerated ? nil : $0 }
        }
        var begun: [Int: Value] = [:]
        for (index, attribute) in type.attributes.enumerated()
        where !attribute.isGenerated && !slots.contains(index) {
            begun[index] = try ColumnDefault.value(of: attribute, table: type.name, connection)
        }
        self.begun = begun
    }

    /// Returns the forms of notes that were made for the tables as they are, by the types' numbers.
    static func ofNow(_ schema: Schema, _ numbers: [Int64]) -> [Int64: NoteForm] {
        Dictionary(
            uniqueKeysWithValues: zip(numbers, schema.types.enumerated()).map { number, type in
                (number, NoteForm(type.element, at: type.offset))
            })
    }
}

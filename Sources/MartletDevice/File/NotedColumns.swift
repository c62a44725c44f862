internal import MartletModel
internal import SQLiteKit

/// The columns that capture's notes hold, as the file records them whenever capture is set up.
///
/// A note names no columns. If another program changes a table while notes wait, only this record
/// tells which value belongs to which column.
struct NotedColumns {
    let connection: Connection

    /// The columns of each type's notes, in order, by the type's number.
    struct Recorded {
        /// Types that had a table when capture was set up.
        var present: [Int64: [String]] = [:]
        /// Types whose table was gone then.
        var away: [Int64: [String]] = [:]
        /// The names that columns had before other programs renamed them, by their present names.
        var homes: [Int64: [String: String]] = [:]
        /// The columns that other programs dropped together with values that the server had sent.
        var dropped: [Int64: Set<String>] = [:]

        /// Returns the columns of a type, whether its table was there or gone; nil if neither is
        /// recorded.
        func columns(_ number: Int64) -> [String]? { present[number] ?? away[number] }

        /// Returns a type's columns as the file records them.
        fileprivate func lines(_ number: Int64) -> [String] {
            let columns = columns(number) ?? []
            let dropped = (dropped[number] ?? []).sorted().map { "\(NotedColumns.formerly)\($0)" }
            return dropped
                + columns.map { name in
                    guard let home = homes[number]?[name], !columns.contains(home) else {
                        return name
                    }
                    return "\(name)\(NotedColumns.formerly)\(home)"
                }
        }
    }

    private static let present = "columns:"
    private static let away = "away:"
    /// A separator that no name of a column contains.
    private static let separator: Character = "\n"
    /// The separator between a column's name and its former one. If the column was dropped, no name
    /// precedes it. No name of a column contains it.
    fileprivate static let formerly: Character = "\t"

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
                let names = column.split(
                    separator: Self.formerly, omittingEmptySubsequences: false
                ).map(String.init)
                if names[0].isEmpty {
                    recorded.dropped[number, default: []].insert(names[1])
                    continue
                }
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

    /// Returns whether the record matches these types.
    func isRecorded(_ types: [EntityType], numbers: [Int64]) throws(SQLiteError) -> Bool {
        try recorded().present == Self.columns(types, numbers)
    }

    /// Records the columns of all types. The record of types without a table stays.
    func record(_ types: [EntityType], numbers: [Int64]) throws(SQLiteError) {
        let wanted = Self.columns(types, numbers)
        let recorded = try recorded()
        for number in recorded.present.keys where wanted[number] == nil {
            try put(Self.away, number, recorded.lines(number))
            try remove(Self.present, number)
        }
        for (number, columns) in wanted where recorded.present[number] != columns {
            var next = recorded
            next.present[number] = columns
            try put(Self.present, number, next.lines(number))
            try remove(Self.away, number)
        }
    }

    /// Updates the record after another program changed the columns of a type.
    /// - Parameters:
    ///   - names: The present names of renamed columns, by their former names.
    ///   - dropped: The columns that are gone, with values that the server had sent.
    func follow(
        _ names: [String: String], dropped: Set<String>, of number: Int64
    ) throws(SQLiteError) {
        var recorded = try recorded()
        let isPresent = recorded.present[number] != nil
        guard let columns = recorded.columns(number) else { return }
        var homes = recorded.homes[number] ?? [:]
        for (former, name) in names {
            let home = homes.removeValue(forKey: former) ?? former
            homes[name] = home == name ? nil : home
        }
        recorded.present[number] = columns.map { names[$0] ?? $0 }
        recorded.homes[number] = homes
        recorded.dropped[number, default: []].formUnion(dropped)
        try put(isPresent ? Self.present : Self.away, number, recorded.lines(number))
    }

    /// Forgets a type whose table the app itself has dropped.
    func forget(_ number: Int64) throws(SQLiteError) {
        try remove(Self.present, number)
        try remove(Self.away, number)
    }

    private static func columns(_ types: [EntityType], _ numbers: [Int64]) -> [Int64: [String]] {
        Dictionary(
            uniqueKeysWithValues: zip(numbers, types.map { CaptureTriggers.noted($0) }))
    }

    private func put(_ kind: String, _ number: Int64, _ lines: [String]) throws(SQLiteError) {
        let put = try connection.prepare("INSERT OR REPLACE INTO main.martlet_state VALUES (?, ?)")
        put.bind(1, text: "\(kind)\(number)")
        put.bind(2, text: lines.joined(separator: String(Self.separator)))
        try put.run()
    }

    private func remove(_ kind: String, _ number: Int64) throws(SQLiteError) {
        try connection.execute("DELETE FROM main.martlet_state WHERE name = '\(kind)\(number)'")
    }
}

/// The layout of the notes under one number.
struct NoteLayout {
    /// The position of the type to whose records they belong.
    let index: Int
    /// For each value of a note, the position of its attribute; nil if the table no longer has the
    /// column.
    let slots: [Int?]
    /// The first values of existing rows in columns that the notes do not hold, by the attribute's
    /// position.
    let begun: [Int: Value]

    /// Creates the layout of notes that were made for the table as it is.
    init(_ type: EntityType, at index: Int) {
        self.index = index
        slots = type.attributes.indices.filter { !type.attributes[$0].isGenerated }
        begun = [:]
    }

    /// Creates the layout of notes that were made when the table had other columns.
    /// - Parameter noted: Their columns, under their present names.
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

    /// Returns the layouts of notes that were made for the tables as they are, by the types'
    /// numbers.
    static func ofNow(_ schema: Schema, _ numbers: [Int64]) -> [Int64: NoteLayout] {
        Dictionary(
            uniqueKeysWithValues: zip(numbers, schema.types.enumerated()).map { number, type in
                (number, NoteLayout(type.element, at: type.offset))
            })
    }
}

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
    }

    private static let present = "columns:"
    private static let away = "away:"
    /// A separator that no name of a column contains.
    private static let separator: Character = "\n"

    func recorded() throws(SQLiteError) -> Recorded {
        let rows = try connection.prepare(
            """
            SELECT name, value FROM main.martlet_state
            WHERE name GLOB '\(Self.present)*' OR name GLOB '\(Self.away)*'
            """)
        var recorded = Recorded()
        _ = try rows.rows { (row) throws(SQLiteError) -> Void in
            let name = row.text(0)
            let columns = row.text(1).split(separator: Self.separator).map(String.init)
            if let number = Int64(name.dropFirst(Self.present.count)), name.hasPrefix(Self.present)
            {
                recorded.present[number] = columns
            } else if let number = Int64(name.dropFirst(Self.away.count)) {
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
        let present = try recorded().present
        for (number, columns) in present where wanted[number] == nil {
            try put(Self.away, number, columns)
            try remove(Self.present, number)
        }
        for (number, columns) in wanted where present[number] != columns {
            try put(Self.present, number, columns)
            try remove(Self.away, number)
        }
    }

    private static func columns(_ types: [EntityType], _ numbers: [Int64]) -> [Int64: [String]] {
        Dictionary(
            uniqueKeysWithValues: zip(numbers, types.map { CaptureTriggers.noted($0) }))
    }

    private func put(_ kind: String, _ number: Int64, _ columns: [String]) throws(SQLiteError) {
        let put = try connection.prepare("INSERT OR REPLACE INTO main.martlet_state VALUES (?, ?)")
        put.bind(1, text: "\(kind)\(number)")
        put.bind(2, text: columns.joined(separator: String(Self.separator)))
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

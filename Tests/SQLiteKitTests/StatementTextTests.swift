import SQLiteKit
import Testing

@Suite("Texts bound to a statement")
struct StatementTextTests {
    private let connection: Connection

    init() throws {
        connection = try Connection(path: ":memory:")
        try connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, a TEXT, b TEXT)")
    }

    private func rows() throws -> [String] {
        let all = try connection.prepare("SELECT id, a, b FROM notes ORDER BY id")
        return try all.rows { (row) throws(SQLiteError) in
            "\(row.integer(0)) \(row.text(1)) \(row.text(2))"
        }
    }

    @Test("are the ones bound last, whatever lengths followed each other")
    func lengths() throws {
        let insert = try connection.prepare("INSERT INTO notes VALUES (?1, ?2, ?3)")
        var expected: [String] = []
        for (index, count) in [3, 127, 128, 129, 5_000, 0, 1, 128].enumerated() {
            let text = String(repeating: "\(index)", count: count)
            insert.bind(1, integer: Int64(index))
            insert.bind(2, text: text)
            #expect(insert.bindUnlessNUL(3, text: "b" + text))
            // Without a reset: bindings stay until they are replaced.
            try insert.run()
            expected.append("\(index) \(text) b\(text)")
        }
        #expect(try rows() == expected)
    }

    @Test("stay where only others are bound anew, and are gone after a reset")
    func keptBindings() throws {
        let insert = try connection.prepare("INSERT INTO notes VALUES (?1, ?2, ?3)")
        insert.bind(1, integer: 1)
        insert.bind(2, text: "first")
        insert.bind(3, text: "second")
        try insert.run()
        insert.bind(1, integer: 2)
        insert.bind(3, text: "third")
        try insert.run()
        insert.reset()
        insert.bind(1, integer: 3)
        insert.bind(3, text: "fourth")
        try insert.run()
        #expect(try rows() == ["1 first second", "2 first third", "3  fourth"])
    }

    @Test("come out of a row that is being read after the same statement's text was read")
    func readingDuringText() throws {
        let echo = try connection.prepare("SELECT ?1 UNION ALL SELECT ?1 || ?2")
        echo.bind(1, text: "one")
        echo.bind(2, text: "two")
        let read = try echo.rows { (row) throws(SQLiteError) in row.text(0) }
        #expect(read == ["one", "onetwo"])
    }

    @Test("work for every parameter of a statement with very many")
    func manyParameters() throws {
        let parameters = (1...200).map { "?\($0)" }
        let long = try connection.prepare("SELECT \(parameters.joined(separator: " || "))")
        for index in 1...200 { long.bind(Int32(index), text: "\(index % 10)") }
        let read = try long.rows { (row) throws(SQLiteError) in row.text(0) }
        #expect(read == [(1...200).map { "\($0 % 10)" }.joined()])
    }
}

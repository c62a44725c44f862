import MartletTransfer
import Testing

@Suite("CSV")
struct CSVTests {
    /// Reads all records of a text handed over in pieces of `size` bytes.
    private func records(_ text: String, pieces size: Int = 4) throws -> [[CSVField]] {
        try records([UInt8](text.utf8), pieces: size)
    }

    private func records(_ bytes: [UInt8], pieces size: Int = 4) throws -> [[CSVField]] {
        var rest = bytes[...]
        var reader = CSVReader(file: "a.csv") {
            guard !rest.isEmpty else { return nil }
            defer { rest = rest.dropFirst(size) }
            return Array(rest.prefix(size))
        }
        var all: [[CSVField]] = []
        while let record = try reader.next() { all.append(record) }
        return all
    }

    @Test("reads quotes, commas, line ends and empty fields", arguments: [1, 2, 3, 1_000])
    func readsCSV(size: Int) throws {
        let text = "\u{FEFF}id,name\r\n1,\"a,\"\"b\"\"\nc\"\n2,\n\n3,\"\""
        #expect(
            try records(text, pieces: size) == [
                [CSVField("id"), CSVField("name")],
                [CSVField("1"), CSVField("a,\"b\"\nc", isQuoted: true)],
                [CSVField("2"), CSVField("")],
                [CSVField("3"), CSVField("", isQuoted: true)],
            ])
        #expect(CSVField("").isNull)
        #expect(!CSVField("", isQuoted: true).isNull)
    }

    @Test(
        "refuses what RFC 4180 does not allow, with the line",
        arguments: [
            ("a,b\n1,x\"y\n", 2), ("a,b\n1,\"x\"y\n", 2), ("a,b\n1\n", 2), ("a,b\n1,2,3\n", 2),
            ("a,b\n1,\"x\n\n", 2), ("a\rb", 1), ("a,b\n1,\0\n", 2),
        ])
    func refusesBadCSV(text: String, line: Int) throws {
        let fault = #expect(throws: CSVFault.self) { try records(text) }
        #expect(fault?.line == line)
        #expect(fault?.file == "a.csv")
    }

    @Test("refuses bytes that are not UTF-8")
    func refusesOtherEncodings() {
        #expect(throws: CSVFault.self) { try records([0x61, 0x0a, 0xe9, 0x0a]) }
    }

    @Test("what is written is read back as it was")
    func roundTripOfCSV() throws {
        let rows: [[String?]] = [
            ["a", "b", "c"], [nil, "", "x,y"], ["\"", "\r\n", "é\n\"q\""], ["'", " s ", "\u{1}"],
        ]
        var writer = CSVWriter()
        for row in rows { writer.write(row) }
        let bytes = writer.take()
        #expect(writer.bytes.isEmpty)
        let read = try records(bytes).map { $0.map { $0.isNull ? nil : $0.text } }
        #expect(read == rows)
    }

    @Test("a column of nulls survives, for its empty lines are records")
    func singleColumn() throws {
        var writer = CSVWriter()
        for row: [String?] in [["a"], [nil], ["1"], [nil]] { writer.write(row) }
        #expect(try records(writer.take()).count == 4)
    }
}

/// Writes comma-separated values that `CSVReader` reads back as they were. Lines end with LF.
public struct CSVWriter {
    /// What has been written and not yet taken.
    public private(set) var bytes: [UInt8] = []

    public init() {}

    /// Appends a record. Nil becomes an empty field, an empty text two quotes.
    public mutating func write(_ record: [String?]) {
        for (index, field) in record.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            if let field { write(field) }
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Gives what has been written and starts anew.
    public mutating func take() -> [UInt8] {
        let taken = bytes
        bytes.removeAll(keepingCapacity: true)
        return taken
    }

    private mutating func write(_ field: String) {
        let utf8 = field.utf8
        let needsQuotes =
            utf8.isEmpty || utf8.contains { $0 == UInt8(ascii: ",") || $0 == 34 || $0 < 14 }
        guard needsQuotes else {
            bytes.append(contentsOf: utf8)
            return
        }
        bytes.append(34)
        for byte in utf8 {
            if byte == 34 { bytes.append(34) }
            bytes.append(byte)
        }
        bytes.append(34)
    }
}

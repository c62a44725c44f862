/// Writes comma-separated values that `CSVReader` reads back as they were. Lines end with LF.
public struct CSVWriter {
    /// What has been written and not yet taken.
    public private(set) var bytes: [UInt8] = []

    public init() {}

    /// Appends a record. Nil becomes an empty field, an empty text two quotes.
    public mutating func write(_ record: [String?]) {
        write(record.map { CSVField($0 ?? "", isQuoted: $0?.isEmpty ?? false) })
    }

    /// Appends a record. A field may ask for quotes; any other field is quoted if its text needs
    /// it.
    public mutating func write(_ record: [CSVField]) {
        for (index, field) in record.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            if !field.isNull { write(field) }
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Gives what has been written and starts anew.
    public mutating func take() -> [UInt8] {
        let taken = bytes
        bytes.removeAll(keepingCapacity: true)
        return taken
    }

    private mutating func write(_ field: CSVField) {
        let utf8 = field.text.utf8
        let needsQuotes =
            field.isQuoted || utf8.contains { $0 == UInt8(ascii: ",") || $0 == 34 || $0 < 14 }
            // At the start of a file it would be taken for a mark of the file's, and left out.
            || utf8.starts(with: CSVReader.byteOrderMark)
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

/// Writes comma-separated values, which `CSVReader` reads back unchanged. Lines end with LF.
package struct CSVWriter {
    /// The bytes that were written and not taken yet.
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Appends a record. Nil becomes an empty field, an empty text two quotes.
    package mutating func write(_ record: [String?]) {
        write(record.map { CSVField($0 ?? "", isQuoted: $0?.isEmpty ?? false) })
    }

    /// Appends a record. A field may ask for quotes; any other field is quoted if its text needs
    /// it.
    package mutating func write(_ record: [CSVField]) {
        for (index, field) in record.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            if !field.isNull { write(field) }
        }
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Returns the written bytes, and empties the buffer.
    package mutating func take() -> [UInt8] {
        let taken = bytes
        bytes.removeAll(keepingCapacity: true)
        return taken
    }

    private mutating func write(_ field: CSVField) {
        let utf8 = field.text.utf8
        let needsQuotes =
            field.isQuoted || utf8.contains { $0 == UInt8(ascii: ",") || $0 == 34 || $0 < 14 }
            // At the start of a file, these bytes would be skipped as its byte order mark.
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

/// Reads comma-separated values (RFC 4180) strictly, record by record.
///
/// Lines end with LF or CRLF, and the last line may end without either. Damaged files are refused:
/// a quote inside an unquoted field, text after a closing quote, a record with another number of
/// fields than the first, bytes that are not UTF-8, and NUL are faults. A byte order mark at the
/// start is skipped. The reader holds one chunk and one record at a time.
package struct CSVReader {
    /// The file's name, for faults.
    package let file: String
    /// The line on which the last record began, counted from 1.
    package private(set) var line = 0
    private let chunks: () throws -> [UInt8]?
    private var chunk: [UInt8] = []
    private var position = 0
    private var currentLine = 1
    private var isAtStart = true
    private var width: Int?
    private var field: [UInt8] = []

    /// - Parameter chunks: Returns the file's bytes piece by piece, and nil at its end.
    package init(file: String, chunks: @escaping () throws -> [UInt8]?) {
        self.file = file
        self.chunks = chunks
    }

    /// Returns the next record; nil at the end of the file. In a file of several columns, an empty
    /// line is no record.
    /// - Throws: `CSVFault`, and the errors of `chunks`.
    package mutating func next() throws -> [CSVField]? {
        if isAtStart { try skipByteOrderMark() }
        while let first = try peek(), first == 10 || first == 13 {
            // In a file of one column an empty line is a record: a null.
            if width == 1 { break }
            try endLine()
        }
        guard try peek() != nil else { return nil }
        line = currentLine
        var record: [CSVField] = []
        record.reserveCapacity(width ?? 8)
        while true {
            record.append(try readField())
            guard let next = try peek() else { break }
            if next == UInt8(ascii: ",") {
                position += 1
            } else {
                try endLine()
                break
            }
        }
        if let width, width != record.count {
            throw CSVFault(
                file: file, line: line,
                message: "expected \(width) fields as in the first line, found \(record.count)")
        }
        width = record.count
        return record
    }

    private func fault(_ message: String) -> CSVFault {
        CSVFault(file: file, line: currentLine, message: message)
    }

    private mutating func peek() throws -> UInt8? {
        while position == chunk.count {
            guard let next = try chunks() else { return nil }
            chunk = next
            position = 0
        }
        return chunk[position]
    }

    static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    /// Many letters begin with the first byte of the mark, so all of its bytes are compared.
    private mutating func skipByteOrderMark() throws {
        isAtStart = false
        var read: [UInt8] = []
        for byte in Self.byteOrderMark {
            guard try peek() == byte else {
                chunk = read + chunk[position...]
                position = 0
                return
            }
            read.append(byte)
            position += 1
        }
    }

    private mutating func endLine() throws {
        if try peek() == 13 {
            position += 1
            guard try peek() == 10 else {
                throw fault("a carriage return without a line feed; end lines with LF or CRLF")
            }
        }
        position += 1
        currentLine += 1
    }

    /// Reads a field up to the comma, line end or end of file, which it does not read.
    private mutating func readField() throws -> CSVField {
        field.removeAll(keepingCapacity: true)
        guard try peek() == UInt8(ascii: "\"") else {
            try readPlain()
            return CSVField(try text())
        }
        position += 1
        try readQuoted()
        if let next = try peek(), next != UInt8(ascii: ","), next != 10, next != 13 {
            throw fault("text after a closing quote; a quote inside a field is written twice")
        }
        return CSVField(try text(), isQuoted: true)
    }

    private mutating func readPlain() throws {
        while let byte = try peek(), byte != UInt8(ascii: ","), byte != 10, byte != 13 {
            if byte == UInt8(ascii: "\"") {
                throw fault("a quote inside a field that does not begin with one")
            }
            if byte == 0 { throw fault("a NUL byte; the file should be text in UTF-8") }
            field.append(byte)
            position += 1
        }
    }

    private mutating func readQuoted() throws {
        let opened = currentLine
        while let byte = try peek() {
            position += 1
            if byte == UInt8(ascii: "\"") {
                guard try peek() == byte else { return }
                position += 1
            }
            if byte == 0 { throw fault("a NUL byte; the file should be text in UTF-8") }
            if byte == 10 { currentLine += 1 }
            field.append(byte)
        }
        throw CSVFault(
            file: file, line: opened, message: "a quoted field that is not closed before the end")
    }

    private func text() throws -> String {
        guard let text = String(validating: field, as: UTF8.self) else {
            throw fault("bytes that are not UTF-8; save the file as UTF-8")
        }
        return text
    }
}

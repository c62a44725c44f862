/// A message of the output plug-in pgoutput, protocol version 1, as far as Martlet needs it
/// (https://www.postgresql.org/docs/15/protocol-logicalrep-message-formats.html).
enum OutputMessage: Hashable {
    /// A column of a table at the time when a row was written.
    struct Column: Hashable {
        let name: String
        /// Whether the column is part of the replica identity of a row.
        let isKey: Bool
    }

    /// The values of a row as texts; nil for null, and for values that were not sent.
    typealias Row = [String?]

    case begin(transaction: UInt32)
    /// A transaction was committed.
    /// - Parameter end: The end of the transaction in the write-ahead log.
    case commit(end: UInt64)
    /// A message from `pg_logical_emit_message`.
    case said(prefix: String, content: String)
    case relation(UInt32, identity: UInt8, columns: [Column])
    case insert(UInt32, Row)
    /// A row was updated.
    /// - Parameter old: The replica identity of the row before, if it has changed.
    case update(UInt32, old: Row?, Row)
    case delete(UInt32, Row)
    case truncate([UInt32])
    /// Any other message.
    case other

    /// Reads a message; nil if the bytes are none.
    init?(_ bytes: [UInt8]) {
        var reader = OutputReader(bytes)
        guard let kind = reader.byte(), let message = Self.read(kind, &reader),
            !reader.isShort
        else { return nil }
        self = message
    }

    private static func read(_ kind: UInt8, _ reader: inout OutputReader) -> OutputMessage? {
        switch kind {
        case UInt8(ascii: "B"):
            reader.skip(16)
            return .begin(transaction: reader.number32())
        case UInt8(ascii: "C"):
            reader.skip(9)
            return .commit(end: reader.number64())
        case UInt8(ascii: "M"):
            reader.skip(9)
            let prefix = reader.text()
            return .said(prefix: prefix, content: reader.text(Int(reader.number32())))
        case UInt8(ascii: "R"): return relation(&reader)
        case UInt8(ascii: "I"):
            let relation = reader.number32()
            guard reader.byte() == UInt8(ascii: "N") else { return nil }
            return .insert(relation, reader.row())
        case UInt8(ascii: "U"): return update(&reader)
        case UInt8(ascii: "D"):
            let relation = reader.number32()
            guard reader.byte() != nil else { return nil }
            return .delete(relation, reader.row())
        case UInt8(ascii: "T"):
            let count = Int(reader.number32())
            reader.skip(1)
            guard count <= reader.left / 4 else { return nil }
            return .truncate((0..<count).map { _ in reader.number32() })
        default: return .other
        }
    }

    private static func relation(_ reader: inout OutputReader) -> OutputMessage {
        let relation = reader.number32()
        _ = reader.text()
        _ = reader.text()
        let identity = reader.byte() ?? 0
        var columns: [Column] = []
        for _ in 0..<Int(reader.number16()) where !reader.isShort {
            let isKey = (reader.byte() ?? 0) & 1 == 1
            columns.append(Column(name: reader.text(), isKey: isKey))
            reader.skip(8)
        }
        return .relation(relation, identity: identity, columns: columns)
    }

    private static func update(_ reader: inout OutputReader) -> OutputMessage? {
        let relation = reader.number32()
        var kind = reader.byte()
        var old: Row?
        if kind != UInt8(ascii: "N") {
            old = reader.row()
            kind = reader.byte()
        }
        guard kind == UInt8(ascii: "N") else { return nil }
        return .update(relation, old: old, reader.row())
    }
}

/// Reads a message's fields. A field that is cut off reads as empty, and sets `isShort`.
private struct OutputReader {
    private let bytes: [UInt8]
    private var position = 0
    /// Whether a field was longer than the bytes that are left.
    private(set) var isShort = false

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var left: Int { bytes.count - position }

    private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= left else {
            isShort = true
            return nil
        }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    mutating func skip(_ count: Int) {
        _ = take(count)
    }

    mutating func byte() -> UInt8? { take(1)?.first }

    mutating func number16() -> UInt16 { (take(2) ?? []).reduce(0) { $0 << 8 | UInt16($1) } }

    mutating func number32() -> UInt32 { (take(4) ?? []).reduce(0) { $0 << 8 | UInt32($1) } }

    mutating func number64() -> UInt64 { (take(8) ?? []).reduce(0) { $0 << 8 | UInt64($1) } }

    mutating func text(_ count: Int) -> String {
        String(decoding: take(count) ?? [], as: UTF8.self)
    }

    /// Reads a text up to the next NUL.
    mutating func text() -> String {
        let end = bytes[position...].firstIndex(of: 0) ?? bytes.endIndex
        let text = text(end - position)
        skip(1)
        return text
    }

    mutating func row() -> OutputMessage.Row {
        var row: OutputMessage.Row = []
        for _ in 0..<Int(number16()) where !isShort {
            switch byte() {
            case UInt8(ascii: "t")?, UInt8(ascii: "b")?: row.append(text(Int(number32())))
            default: row.append(nil)
            }
        }
        return row
    }
}

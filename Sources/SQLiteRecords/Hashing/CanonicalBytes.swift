internal import MartletModel
internal import SQLiteKit

/// The bytes that represent a record when it is hashed: the same for each state, on every storage.
///
/// It takes columns as they are stored, without converting them to values of the wire. Values that
/// no wire carries (an infinity, text that is not UTF-8) have bytes too, so that a check finds
/// damage instead of failing on it.
struct CanonicalBytes: Sendable {
    private enum Tag {
        static let integer: UInt8 = 1
        static let real: UInt8 = 2
        static let text: UInt8 = 3
        static let blob: UInt8 = 4
        static let boolean: UInt8 = 5
    }

    private(set) var bytes: [UInt8] = []
    /// Whether the wire can carry all columns since `begin`; always true if values are not checked.
    private(set) var isSendable = true
    private let checksValues: Bool

    /// Creates an empty list of bytes.
    /// - Parameter checksValues: Whether to compute `isSendable`.
    init(checksValues: Bool = false) {
        self.checksValues = checksValues
    }

    /// The bytes before those of the next value; appended together with the first of them.
    private var head = ByteGroup()

    /// Begins again, with the byte that names the kind of what follows.
    mutating func begin(_ what: UInt8) {
        isSendable = true
        bytes.removeAll(keepingCapacity: true)
        head = ByteGroup()
        head.append(what)
    }

    /// Appends the position of the attribute whose value follows.
    mutating func append(position: UInt16) {
        head.append(position)
    }

    mutating func append(_ id: RecordID) {
        switch id {
        case .integer(let number): append(integer: number)
        case .text(let text): append(text: text)
        }
    }

    mutating func append(integer: Int64) {
        begin(last: Tag.integer)
        bytes.append(word: UInt64(bitPattern: integer))
    }

    /// Appends a value as a column of its kind holds it.
    /// - Precondition: It is not null.
    mutating func append(_ value: Value, kind: AttributeKind) {
        switch value {
        case .null: preconditionFailure("a null is left out")
        case .boolean(let flag): append(number: flag ? 1 : 0, kind: kind)
        case .integer(let number): append(number: number, kind: kind)
        case .real(let number): append(double: number, kind: kind)
        case .text(let text):
            switch kind {
            case .blob:
                let blob = Base64.decode(text) ?? Array(text.utf8)
                begin(Tag.blob, count: blob.count)
                bytes.append(contentsOf: blob)
            case .numeric: append(text: DecimalText.canonical(text))
            default: append(text: text)
            }
        }
    }

    /// Appends a column that is not null.
    /// - Parameter storage: The storage class of the column's value.
    mutating func append(
        _ row: Statement, _ column: Int32, _ storage: Statement.Storage, kind: AttributeKind
    ) {
        if checksValues, !Self.isSendable(row, column, storage, kind) { isSendable = false }
        switch storage {
        case .null: preconditionFailure("a null is left out")
        case .integer where kind != .blob: append(number: row.integer(column), kind: kind)
        case .real where kind != .blob: append(double: row.real(column), kind: kind)
        case .text where kind == .numeric: append(text: DecimalText.canonical(row.text(column)))
        default:
            let isBlob = kind == .blob || storage == .blob
            head.append(isBlob ? Tag.blob : Tag.text)
            row.appendCounted(column, isText: storage != .blob, behind: head, to: &bytes)
            head = ByteGroup()
        }
    }

    /// Returns whether `Statement.value(_:kind:)` would return a value, and not throw an error.
    private static func isSendable(
        _ row: Statement, _ column: Int32, _ storage: Statement.Storage, _ kind: AttributeKind
    ) -> Bool {
        switch storage {
        case .null, .integer: true
        case .real: row.real(column).isFinite
        case .blob: kind == .blob
        case .text: kind == .blob || row.isUTF8(column)
        }
    }

    // MARK: Numbers

    private mutating func append(number: Int64, kind: AttributeKind) {
        switch kind {
        case .boolean where number == 0 || number == 1:
            head.append(Tag.boolean)
            begin(last: number == 1 ? 1 : 0)
        case .numeric, .text: append(text: String(number))
        case .real: append(real: Double(number))
        default: append(integer: number)
        }
    }

    private mutating func append(double number: Double, kind: AttributeKind) {
        switch kind {
        case .numeric where number.isFinite: append(text: DecimalText.text(number))
        case .text: append(text: number.description)
        case .real: append(real: number)
        default:
            // Whether a whole number is stored as an integer depends on the storage.
            if let whole = Int64(exactly: number) {
                append(number: whole, kind: kind)
            } else {
                append(real: number)
            }
        }
    }

    private mutating func append(real: Double) {
        begin(last: Tag.real)
        // SQLite stores no sign of zero.
        bytes.append(word: real == 0 ? 0 : real.bitPattern)
    }

    // MARK: Bytes

    private mutating func append(text: String) {
        begin(Tag.text, count: text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }

    private mutating func begin(_ tag: UInt8, count: Int) {
        head.append(tag)
        head.append(UInt32(truncatingIfNeeded: count))
        bytes.append(head)
        head = ByteGroup()
    }

    private mutating func begin(last byte: UInt8) {
        head.append(byte)
        bytes.append(head)
        head = ByteGroup()
    }
}

internal import CSQLite

/// Access to columns as bytes, for callers that need many of them fast.
extension Statement {
    /// Appends `head`, the number of the column's bytes (32 bits, little endian), and the stored
    /// bytes. For a number these are the bytes of its text.
    /// - Complexity: O(*n*) in the column's bytes.
    public func appendCounted(
        _ column: Int32, isText: Bool, behind head: ByteGroup, to bytes: inout [UInt8]
    ) {
        // The text is requested first if the column is one, because SQLite counts the bytes of the
        // form that it returned last.
        let start =
            isText
            ? UnsafeRawPointer(textStart(column))
            : sqlite3_column_blob(pointer, column)
        let count = Int(sqlite3_column_bytes(pointer, column))
        var head = head
        head.append(UInt32(truncatingIfNeeded: count))
        bytes.append(head)
        guard count > 0, let start else { return }
        bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
    }
}

/// A few bytes that are appended together.
public struct ByteGroup: Sendable {
    fileprivate var bytes: UInt64 = 0
    fileprivate var count = 0

    public init() {}

    /// Appends a byte.
    /// - Precondition: A group has eight bytes at most.
    public mutating func append(_ byte: UInt8) {
        bytes |= UInt64(byte) << UInt64(count * 8)
        count += 1
    }

    /// Appends two bytes, little endian.
    public mutating func append(_ number: UInt16) {
        bytes |= UInt64(number) << UInt64(count * 8)
        count += 2
    }

    /// Appends four bytes, little endian.
    public mutating func append(_ number: UInt32) {
        bytes |= UInt64(number) << UInt64(count * 8)
        count += 4
    }
}

extension [UInt8] {
    /// Appends the bytes of a group.
    public mutating func append(_ group: ByteGroup) {
        precondition(group.count <= 8, "a group of eight bytes at most")
        Swift.withUnsafeBytes(of: group.bytes.littleEndian) {
            append(contentsOf: $0.prefix(group.count))
        }
    }

    /// Appends eight bytes, little endian.
    public mutating func append(word: UInt64) {
        Swift.withUnsafeBytes(of: word.littleEndian) { append(contentsOf: $0) }
    }
}

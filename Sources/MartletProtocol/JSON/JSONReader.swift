package import MartletModel

/// Reads JSON (RFC 8259) from a byte array, strictly, token by token.
///
/// Beyond what the grammar refuses, it refuses bytes that are not UTF-8, unpaired surrogates in
/// escapes, a member name twice in one object, nesting beyond `Limits.depth`, and a leading byte
/// order mark. Two member names are the same if they are canonically equivalent.
///
/// The reader is a cursor: each `read…` function starts at the next token and leaves the cursor
/// after the value it has read. After a fault the reader must not be used any more.
package struct JSONReader {
    let bytes: [UInt8]
    /// The position at which the next token, or the white space before it, starts.
    package internal(set) var position = 0
    /// The number of open arrays and objects.
    var depth = 0

    /// Creates a reader at the start of a document.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The kinds of JSON value.
    package enum Kind: Hashable, Sendable {
        case text
        case number
        case boolean
        case null
        case array
        case object
    }

    /// Returns the kind of the next value, by its first character; nil if no value can start there.
    package mutating func nextKind() -> Kind? {
        switch peek() {
        case UInt8(ascii: "\""): .text
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): .number
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        case UInt8(ascii: "n"): .null
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "{"): .object
        default: nil
        }
    }

    /// Checks that only white space is left.
    /// - Throws: `WireFault` if anything else follows.
    package mutating func finish() throws(WireFault) {
        _ = peek()
        if position < bytes.count {
            throw WireFault("The document goes on after its end.", at: position)
        }
    }

    /// Reads an object, and calls `member` with each name; `member` must read the value.
    /// - Throws: `WireFault` if the next value is no object or has a name twice; errors of
    ///   `member`.
    package mutating func readObject(
        _ member: (inout JSONReader, String) throws(WireFault) -> Void
    ) throws(WireFault) {
        var names = MemberNames()
        try enter(.object)
        var more = try beginsElement(of: .object)
        while more {
            let start = position
            let name = try readMemberName()
            guard names.insert(name) else { throw Self.duplicate(at: start) }
            try member(&self, name)
            more = try hasNext(in: .object)
        }
    }

    /// Reads an array, and calls `element` before each element; `element` must read it.
    /// - Throws: `WireFault` if the next value is no array; errors of `element`.
    package mutating func readArray(
        _ element: (inout JSONReader) throws(WireFault) -> Void
    ) throws(WireFault) {
        try enter(.array)
        var more = try beginsElement(of: .array)
        while more {
            try element(&self)
            more = try hasNext(in: .array)
        }
    }

    /// Reads a text.
    /// - Throws: `WireFault` if the next value is no text.
    package mutating func readText() throws(WireFault) -> String {
        guard peek() == UInt8(ascii: "\"") else { throw shape("Expected a text.") }
        return text(of: try scanText())
    }

    /// Reads true or false.
    /// - Throws: `WireFault` if the next value is neither.
    package mutating func readBoolean() throws(WireFault) -> Bool {
        switch peek() {
        case UInt8(ascii: "t"):
            try pass(Self.trueWord)
            return true
        case UInt8(ascii: "f"):
            try pass(Self.falseWord)
            return false
        default: throw shape("Expected true or false.")
        }
    }

    /// Passes a null if one is next.
    /// - Returns: Whether there was one.
    /// - Throws: `WireFault` for another word that begins like null.
    package mutating func readNull() throws(WireFault) -> Bool {
        guard peek() == UInt8(ascii: "n") else { return false }
        try pass(Self.nullWord)
        return true
    }

    /// Reads a text, a number, true, false or null.
    /// - Throws: `WireFault` for an array or an object, and for bytes that are not JSON.
    package mutating func readValue() throws(WireFault) -> Value {
        switch nextKind() {
        case .text: return .text(text(of: try scanText()))
        case .number: return try readNumber()
        case .null:
            try pass(Self.nullWord)
            return .null
        case .boolean: return .boolean(try readBoolean())
        case .array, .object:
            throw shape("A value is an array or an object; expected text, number, boolean or null.")
        case nil: throw unexpected()
        }
    }

    /// Passes one value of any kind, and checks all of it except the size of numbers.
    /// - Throws: `WireFault` for bytes that are not JSON.
    package mutating func skipValue() throws(WireFault) {
        switch nextKind() {
        case .text: _ = try scanText()
        case .number: _ = try scanNumber()
        case .null: try pass(Self.nullWord)
        case .boolean: _ = try readBoolean()
        case .array: try skipArray()
        case .object: try skipObject()
        case nil: throw unexpected()
        }
    }

    private mutating func skipArray() throws(WireFault) {
        try enter(.array)
        var more = try beginsElement(of: .array)
        while more {
            try skipValue()
            more = try hasNext(in: .array)
        }
    }

    private mutating func skipObject() throws(WireFault) {
        var names = MemberNames()
        try enter(.object)
        var more = try beginsElement(of: .object)
        while more {
            let start = position
            let name = try readMemberName()
            guard names.insert(name) else { throw Self.duplicate(at: start) }
            try skipValue()
            more = try hasNext(in: .object)
        }
    }
}

// MARK: - Structure

extension JSONReader {
    /// The two kinds of values that contain others.
    enum Container {
        case array
        case object

        var opening: UInt8 { self == .array ? UInt8(ascii: "[") : UInt8(ascii: "{") }
        var closing: UInt8 { self == .array ? UInt8(ascii: "]") : UInt8(ascii: "}") }
    }

    private static let trueWord = [UInt8]("true".utf8)
    private static let falseWord = [UInt8]("false".utf8)
    private static let nullWord = [UInt8]("null".utf8)

    /// Returns the next byte that is not white space, without passing it; 0 at the end of the
    /// input.
    mutating func peek() -> UInt8 {
        var index = position
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case 0x20, 0x0A, 0x0D, 0x09: index += 1
            default:
                position = index
                return byte
            }
        }
        position = index
        return 0
    }

    /// Passes the opening bracket of an array or object.
    mutating func enter(_ container: Container) throws(WireFault) {
        guard peek() == container.opening else {
            throw shape(container == .array ? "Expected an array." : "Expected an object.")
        }
        depth += 1
        guard depth <= Limits.depth else {
            throw WireFault("Nested deeper than \(Limits.depth) levels.", at: position)
        }
        position += 1
    }

    /// Returns whether an element follows the opening bracket; passes the end of an empty
    /// container.
    mutating func beginsElement(of container: Container) throws(WireFault) -> Bool {
        guard peek() == container.closing else { return true }
        position += 1
        depth -= 1
        return false
    }

    /// Passes the comma after an element (returns true) or the closing bracket (returns false).
    mutating func hasNext(in container: Container) throws(WireFault) -> Bool {
        let byte = peek()
        if byte == UInt8(ascii: ",") {
            position += 1
            _ = peek()
            return true
        }
        guard byte == container.closing else { throw unexpected() }
        position += 1
        depth -= 1
        return false
    }

    /// Reads a member's name and the colon after it.
    mutating func readMemberName() throws(WireFault) -> String {
        let token = try scanMemberName()
        return text(of: token)
    }

    /// Passes a member's name and the colon after it.
    mutating func scanMemberName() throws(WireFault) -> TextToken {
        guard peek() == UInt8(ascii: "\"") else {
            throw WireFault("Expected a member name in quotes.", at: position)
        }
        let token = try scanText()
        try passColon()
        return token
    }

    mutating func passColon() throws(WireFault) {
        guard peek() == UInt8(ascii: ":") else {
            throw WireFault("Expected a colon after a member name.", at: position)
        }
        position += 1
    }

    private mutating func pass(_ word: [UInt8]) throws(WireFault) {
        for (offset, byte) in word.enumerated() {
            let index = position + offset
            guard index < bytes.count, bytes[index] == byte else { throw unexpected() }
        }
        position += word.count
    }
}

// MARK: - Faults

extension JSONReader {
    /// Returns the fault that the next bytes are not JSON.
    func unexpected() -> WireFault {
        if position >= bytes.count {
            return WireFault("The document ends too early.", at: position)
        }
        if position == 0, bytes[0] == 0xEF {
            return WireFault("The document starts with a byte order mark; leave it out.", at: 0)
        }
        return WireFault("This is not JSON: unexpected character.", at: position)
    }

    /// Returns the fault that the next value is JSON (or may be), but not the expected one.
    mutating func shape(_ message: String) -> WireFault {
        guard nextKind() != nil else { return unexpected() }
        return WireFault(message, at: position, shape: true)
    }

    static func duplicate(at position: Int) -> WireFault {
        WireFault("An object has the same member name twice.", at: position)
    }
}

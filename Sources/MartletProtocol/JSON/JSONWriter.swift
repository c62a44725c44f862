package import MartletModel

/// Writes JSON into a byte array: compact, members in the order in which they are written.
///
/// The writer inserts the commas. The caller must match brackets, and give each member a name and a
/// value.
package struct JSONWriter {
    /// The bytes written so far.
    package internal(set) var bytes: [UInt8] = []
    /// Whether a comma must precede the next name or element.
    var needsComma = false

    /// Creates a writer that has written nothing.
    package init() {}

    /// Opens an object, as the next element or value.
    package mutating func beginObject() {
        separate()
        bytes.append(UInt8(ascii: "{"))
        needsComma = false
    }

    /// Closes the innermost object.
    package mutating func endObject() {
        bytes.append(UInt8(ascii: "}"))
        needsComma = true
    }

    /// Opens an array, as the next element or value.
    package mutating func beginArray() {
        separate()
        bytes.append(UInt8(ascii: "["))
        needsComma = false
    }

    /// Closes the innermost array.
    package mutating func endArray() {
        bytes.append(UInt8(ascii: "]"))
        needsComma = true
    }

    /// Writes a member's name; its value must follow.
    package mutating func name(_ name: String) {
        text(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// Writes a text, with the necessary escapes.
    package mutating func text(_ text: String) {
        separate()
        appendQuoted(text)
        needsComma = true
    }

    /// Writes an integer.
    package mutating func integer(_ number: Int64) {
        separate()
        appendInteger(number)
        needsComma = true
    }

    /// Writes true or false.
    package mutating func boolean(_ flag: Bool) {
        separate()
        bytes.append(contentsOf: flag ? Self.trueWord : Self.falseWord)
        needsComma = true
    }

    /// Writes null.
    package mutating func null() {
        separate()
        bytes.append(contentsOf: Self.nullWord)
        needsComma = true
    }

    /// Writes the shortest form that reads back as the same double, with a point or an exponent.
    /// - Throws: `WireFault` for NaN and infinities, for which JSON has no form.
    package mutating func real(_ number: Double) throws(WireFault) {
        separate()
        try appendReal(number)
        needsComma = true
    }

    /// Writes a value.
    /// - Throws: `WireFault` for NaN and infinities, for which JSON has no form.
    package mutating func value(_ value: Value) throws(WireFault) {
        separate()
        try append(value)
        needsComma = true
    }

    /// Writes JSON from another writer as the next element or value.
    package mutating func raw(_ json: [UInt8]) {
        separate()
        bytes.append(contentsOf: json)
        needsComma = true
    }

    /// Writes the members of an object that another writer has written into the open one.
    mutating func members(of object: [UInt8]) {
        guard object.count > 2 else { return }
        separate()
        bytes.append(contentsOf: object[1..<object.count - 1])
        needsComma = true
    }

    // MARK: Members

    /// Writes a member, or nothing if there is no value.
    package mutating func member(_ name: String, _ text: String?) {
        guard let text else { return }
        self.name(name)
        self.text(text)
    }

    /// Writes a member, or nothing if there is no value.
    package mutating func member(_ name: String, _ number: Int64?) {
        guard let number else { return }
        self.name(name)
        integer(number)
    }

    /// Writes a member, or nothing if there is no value.
    package mutating func member(_ name: String, _ flag: Bool?) {
        guard let flag else { return }
        self.name(name)
        boolean(flag)
    }
}

// MARK: - Pieces without commas

extension JSONWriter {
    private static let trueWord = [UInt8]("true".utf8)
    private static let falseWord = [UInt8]("false".utf8)
    private static let nullWord = [UInt8]("null".utf8)
    private static let hexadecimal = [UInt8]("0123456789abcdef".utf8)

    mutating func separate() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    mutating func append(_ value: Value) throws(WireFault) {
        switch value {
        case .text(let text): appendQuoted(text)
        case .integer(let number): appendInteger(number)
        case .null: bytes.append(contentsOf: Self.nullWord)
        case .boolean(let flag): bytes.append(contentsOf: flag ? Self.trueWord : Self.falseWord)
        case .real(let number): try appendReal(number)
        }
    }

    /// Appends a text in quotes. Most texts need no escape, so the bytes are copied first and
    /// checked afterwards.
    mutating func appendQuoted(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        if needsEscape(from: start) {
            bytes.removeSubrange(start...)
            appendEscaped(text)
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private func needsEscape(from start: Int) -> Bool {
        for index in start..<bytes.count {
            let byte = bytes[index]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                return true
            }
        }
        return false
    }

    private mutating func appendEscaped(_ text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): appendEscape(byte)
            case 0x08: appendEscape(UInt8(ascii: "b"))
            case 0x0C: appendEscape(UInt8(ascii: "f"))
            case 0x0A: appendEscape(UInt8(ascii: "n"))
            case 0x0D: appendEscape(UInt8(ascii: "r"))
            case 0x09: appendEscape(UInt8(ascii: "t"))
            case 0..<0x20:
                bytes.append(contentsOf: "\\u00".utf8)
                bytes.append(Self.hexadecimal[Int(byte >> 4)])
                bytes.append(Self.hexadecimal[Int(byte & 15)])
            default: bytes.append(byte)
            }
        }
    }

    private mutating func appendEscape(_ letter: UInt8) {
        bytes.append(UInt8(ascii: "\\"))
        bytes.append(letter)
    }

    mutating func appendInteger(_ number: Int64) {
        if number < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = number.magnitude
        let start = bytes.count
        repeat {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit))
            rest = quotient
        } while rest > 0
        var (low, high) = (start, bytes.count - 1)
        while low < high {
            bytes.swapAt(low, high)
            low += 1
            high -= 1
        }
    }

    mutating func appendReal(_ number: Double) throws(WireFault) {
        guard number.isFinite else {
            throw WireFault("NaN and infinities cannot be written as JSON.", at: bytes.count)
        }
        // This is the shortest round-trip form; it always has a point or an exponent.
        bytes.append(contentsOf: number.description.utf8)
    }
}

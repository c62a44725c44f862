internal import MartletModel

/// Reads an object that is a text in the input, as a delta carries its record.
///
/// One could decode the text first and then read it, but that passes each byte three times and
/// copies it twice. This reads the text in place, as long as it has the usual form: no white space
/// between the tokens, and nothing in its texts that had to be escaped twice. Each quote is then a
/// backslash and a quote.
extension JSONReader {
    /// The most members of an object that is read here, because a name is compared with all names
    /// before. An object with more members is read in the other way.
    private static let mostNestedMembers = 64

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    /// Reads a text that holds an object of plain values, member by member.
    /// - Parameter template: The last object, as a guess at this one.
    /// - Returns: Exactly the attributes that reading the text as a document would give. Nil if it
    ///   has another form or is not sound; the cursor may then be anywhere.
    mutating func readObjectInText(like template: inout RecordTemplate) -> Attributes? {
        guard pass(Self.quote), pass(UInt8(ascii: "{")) else { return nil }
        var values: [Value] = []
        values.reserveCapacity(template.names.count)
        if byte(at: position) != UInt8(ascii: "}") {
            repeat {
                let matched = values.count
                if matched >= template.members.count
                    || !passNestedName(template.members[matched].token)
                {
                    guard learnNestedName(&template, after: matched) else { return nil }
                }
                guard let value = readNestedValue() else { return nil }
                values.append(value)
            } while pass(UInt8(ascii: ","))
        }
        guard pass(UInt8(ascii: "}")), pass(Self.quote) else { return nil }
        if values.count < template.members.count { template = template.prefix(values.count) }
        return Attributes(names: template.names, values: values)
    }

    /// Returns the byte at an index; after the end 0, which occurs nowhere in a sound document.
    private func byte(at index: Int) -> UInt8 {
        index < bytes.count ? bytes[index] : 0
    }

    private mutating func pass(_ expected: UInt8) -> Bool {
        guard byte(at: position) == expected else { return false }
        position += 1
        return true
    }

    /// Passes a member's name and its colon, if the name equals the one at an earlier position.
    private mutating func passNestedName(_ earlier: TextToken) -> Bool {
        let start = position + 2
        let end = start + earlier.count
        guard end + 2 < bytes.count, bytes[position] == Self.backslash,
            bytes[position + 1] == Self.quote, bytes[end] == Self.backslash,
            bytes[end + 1] == Self.quote, bytes[end + 2] == UInt8(ascii: ":")
        else { return false }
        for offset in 0..<earlier.count
        where bytes[start + offset] != bytes[earlier.start + offset] {
            return false
        }
        position = end + 3
        return true
    }

    /// Passes a member's name and its colon, and makes it the template's next after `matched`
    /// others.
    /// - Returns: Whether this is a name, and a new one.
    private mutating func learnNestedName(
        _ template: inout RecordTemplate, after matched: Int
    ) -> Bool {
        guard matched < Self.mostNestedMembers, let token = scanNestedText(),
            pass(UInt8(ascii: ":"))
        else { return false }
        let name = text(of: token)
        template = template.prefix(matched)
        guard !template.names.contains(name) else { return false }
        template.members.append(RecordTemplate.Member(token: token, role: .attribute))
        template.names.append(name)
        return true
    }

    private mutating func readNestedValue() -> Value? {
        do throws(WireFault) {
            switch byte(at: position) {
            case Self.backslash: return scanNestedText().map { .text(text(of: $0)) }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                return try readNumber()
            case UInt8(ascii: "t"), UInt8(ascii: "f"): return .boolean(try readBoolean())
            case UInt8(ascii: "n"): return try readNull() ? .null : nil
            default: return nil
            }
        } catch {
            return nil
        }
    }

    /// Passes a text between two escaped quotes, and checks all of it; returns nil if it contains
    /// another escape or is not sound.
    private mutating func scanNestedText() -> TextToken? {
        guard pass(Self.backslash), pass(Self.quote) else { return nil }
        let start = position
        var index = start
        while index < bytes.count {
            let byte = bytes[index]
            if byte >= 0x80 {
                guard let count = try? multibyteCount(at: index) else { return nil }
                index += count
            } else if byte == Self.backslash {
                guard self.byte(at: index + 1) == Self.quote else { return nil }
                position = index + 2
                return TextToken(start: start, end: index, isEscaped: false)
            } else if byte < 0x20 || byte == Self.quote {
                return nil
            } else {
                index += 1
            }
        }
        return nil
    }
}

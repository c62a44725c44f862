internal import MartletModel

/// An object that stands in the input as a text, as a delta carries its record.
///
/// It could be made a string first and that be read; but then each byte is passed three times and
/// copied twice. Here the text is read where it stands, as long as it has the form in which it is
/// written everywhere: no white space between the tokens, and nothing in its texts that had to be
/// escaped twice. Each quote is a backslash and a quote then.
extension JSONReader {
    /// Members of which an object may have more only in a form that is read otherwise: here a name
    /// is compared with all before.
    private static let mostNestedMembers = 64

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    /// Reads a text that holds an object of plain values, member by member.
    /// - Parameter template: The object read last, as a guess at this one.
    /// - Returns: What the object says: exactly what reading the text as a document would give. Nil
    ///   where it has another form or is not sound; the cursor then stands anywhere.
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

    /// The byte at an index; 0, which stands nowhere in a sound document, behind the end.
    private func byte(at index: Int) -> UInt8 {
        index < bytes.count ? bytes[index] : 0
    }

    private mutating func pass(_ expected: UInt8) -> Bool {
        guard byte(at: position) == expected else { return false }
        position += 1
        return true
    }

    /// Passes a member's name and its colon, where the name is the one at an earlier place.
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

    /// Passes a member's name and its colon, and makes it the template's next behind `matched`
    /// others.
    /// - Returns: Whether that is a name, and a new one.
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

    /// Passes a text between two quotes that are escaped, all of it checked; nil where something
    /// else in it is.
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

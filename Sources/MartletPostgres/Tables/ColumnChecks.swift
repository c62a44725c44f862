package import MartletModel
package import MartletServerCore
import SQLiteRecords

extension PostgresSchema {
    /// The checks of values and ids that come before PostgreSQL's own.
    package var checks: ValueChecks {
        var columns: [String: [String: PostgresColumn]] = [:]
        var references: [String: Set<String>] = [:]
        var keys: [String: PostgresColumn] = [:]
        for table in tables {
            columns[table.type.name] = Dictionary(
                uniqueKeysWithValues: table.columns.map { ($0.name, $0) })
            references[table.type.name] = Set(table.type.references.map(\.attribute))
            // A key that PostgreSQL always generates is not among the written columns, but still
            // names records.
            keys[table.type.name] = PostgresColumn(
                name: table.key.name, declaration: table.key.declaration, form: table.key.form,
                length: table.key.length)
        }
        return ValueChecks(
            value: { [columns, references] value, attribute, type in
                guard let column = columns[type.name]?[attribute.name] else { return nil }
                // Temporary ids of devices are replaced before the value is written.
                if case .integer(..<0) = value,
                    references[type.name]?.contains(attribute.name) == true
                {
                    return nil
                }
                return column.mismatch(value)
            },
            id: { [keys] id, type in
                if let mismatch = RecordTable.mismatch(id, type) { return mismatch }
                guard let key = keys[type.name] else { return nil }
                switch id {
                case .integer(..<0): return nil
                case .integer(let number): return key.mismatch(.integer(number))
                case .text(let text):
                    // PostgreSQL would cut off spaces at the end, and so make another id.
                    if let length = key.length, text.unicodeScalars.count > length {
                        return "expected an id of at most \(length) characters, found a longer one"
                    }
                    return key.mismatch(.text(text))
                }
            })
    }
}

extension PostgresColumn {
    /// Returns why the column cannot hold the value: a sentence without the value, such as
    /// “expected an integer, found text”. Nil if the column can hold it as far as can be checked
    /// here. PostgreSQL checks the rest: constraints, and the grammar of arrays and JSON.
    /// - Complexity: O(*n*) in the bytes of a text.
    package func mismatch(_ value: Value) -> String? {
        if isComputed { return "it is computed by the database, never written" }
        switch (value, form) {
        case (.null, _), (.boolean, .boolean): return nil
        case (.integer(let number), .integer(let bytes)):
            let limit = Int64.max >> Int64(64 - 8 * bytes)
            return (-limit - 1...limit).contains(number)
                ? nil : "expected an integer of \(bytes) bytes, found a greater one"
        case (.integer, .real), (.integer, .double): return nil
        case (.real(let number), .real), (.real(let number), .double):
            return Self.mismatch(number, isSingle: form == .real)
        case (.text, .boolean), (.text, .integer), (.text, .real), (.text, .double):
            return "expected \(words), found text"
        case (.text(let text), _): return mismatch(text)
        case (.boolean, _): return "expected \(words), found true or false"
        case (.integer, _): return "expected \(words), found an integer"
        case (.real, _): return "expected \(words), found a number with a fraction or exponent"
        }
    }

    private static func mismatch(_ number: Double, isSingle: Bool) -> String? {
        guard number.isFinite else { return "expected a finite number, found an infinity or NaN" }
        guard isSingle else { return nil }
        let single = Float(number)
        // PostgreSQL refuses a number that is too large, and one that would become zero.
        guard single.isFinite, single != 0 || number == 0 else {
            return "expected a number that a real holds, found one out of its range"
        }
        return nil
    }

    private func mismatch(_ text: String) -> String? {
        if text.utf8.contains(0) { return "expected text without NUL, found one" }
        switch form {
        case .text: return lengthMismatch(text)
        case .binary:
            return Base64.decode(text) == nil ? "expected base64 text, found other text" : nil
        case .numeric:
            return TextFormat.isDecimal(text)
                ? nil : "expected a decimal number such as “-12.5”, found other text"
        case .uuid:
            return TextFormat.isUUID(text)
                ? nil : "expected a UUID in lower case with hyphens, found other text"
        case .date:
            // PostgreSQL takes the day of a date and time.
            return TextFormat.isDate(text) || TextFormat.isMoment(text, hasZone: false)
                ? nil : "expected a date such as “2026-01-31”"
        case .time:
            return TextFormat.isTime(text[...]) ? nil : "expected a time such as “09:30:00”"
        case .timestamp:
            return TextFormat.isMoment(text, hasZone: false)
                ? nil : "expected a date and time such as “2026-01-31 09:30:00”"
        case .timestamptz:
            return TextFormat.isMoment(text, hasZone: true)
                ? nil : "expected a date, time and zone such as “2026-01-31 09:30:00+00”"
        case .array:
            return ["{", "["].contains(text.unicodeScalars.first)
                && text.utf8.last == UInt8(ascii: "}")
                ? nil : "expected an array such as “{1,2}”, found other text"
        // An enumeration may have got a value since the tables were read.
        case .json: return JSONFormat.fault(of: text, expands: false)
        case .jsonb: return JSONFormat.fault(of: text, expands: true)
        case .boolean, .integer, .real, .double, .enumeration: return nil
        }
    }

    /// Returns why a text is too long; nil if it fits. PostgreSQL counts characters, and cuts off
    /// spaces after those that fit.
    private func lengthMismatch(_ text: String) -> String? {
        guard let length, text.utf8.count > length else { return nil }
        let excess = text.unicodeScalars.dropFirst(length)
        guard excess.contains(where: { $0 != " " }) else { return nil }
        return "expected at most \(length) characters, found \(length + excess.count)"
    }

    private var words: String {
        switch form {
        case .boolean: "true or false"
        case .integer: "an integer"
        case .real, .double: "a number"
        case .numeric: "a decimal number as text"
        case .binary: "base64 text"
        default: "text"
        }
    }
}

/// Checks the forms of texts as far as this is cheap: it does not check that the month has that
/// day.
enum TextFormat {
    static func isUUID(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.enumerated().allSatisfy { index, byte in
            [8, 13, 18, 23].contains(index)
                ? byte == UInt8(ascii: "-")
                : (48...57).contains(byte) || (97...102).contains(byte)
        }
    }

    /// Returns whether a text is a number with at most one point and digits on each side of it, or
    /// one of the special values of PostgreSQL's numeric.
    static func isDecimal(_ text: String) -> Bool {
        if ["NaN", "Infinity", "-Infinity"].contains(text) { return true }
        let digits = text.utf8.dropFirst(text.utf8.first == UInt8(ascii: "-") ? 1 : 0)
        let parts = digits.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return (1...2).contains(parts.count)
            && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { (48...57).contains($0) } }
    }

    /// Returns whether a text is a year, month and day in digits, perhaps with BC, or an infinity.
    static func isDate(_ text: String) -> Bool {
        if isInfinity(text) { return true }
        return isDay(withoutEra(text[...]))
    }

    /// Returns whether a text is a time: hours, minutes, and perhaps seconds with a fraction.
    static func isTime(_ text: Substring) -> Bool {
        let parts = text.utf8.split(
            separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count) else { return false }
        let seconds = parts[parts.count - 1]
        let pieces = seconds.split(
            separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        return parts.prefix(2).allSatisfy(areTwoDigits)
            && (parts.count == 2
                || pieces.first.map(areTwoDigits) == true
                    && pieces.dropFirst().allSatisfy { areDigits($0) })
    }

    /// Returns whether a text is a day and a time, separated by a space or T.
    static func isMoment(_ text: String, hasZone: Bool) -> Bool {
        if isInfinity(text) { return true }
        let moment = withoutEra(text[...])
        guard let mark = moment.firstIndex(where: { $0 == " " || $0 == "T" }) else { return false }
        var time = moment[moment.index(after: mark)...]
        // PostgreSQL reads a timestamp without a zone as one in UTC.
        if time.last == "Z" {
            time.removeLast()
        } else if hasZone {
            if let sign = time.lastIndex(where: { $0 == "+" || $0 == "-" }) {
                let zone = time[sign...].dropFirst().utf8.filter { $0 != UInt8(ascii: ":") }
                guard (1...6).contains(zone.count), zone.allSatisfy({ (48...57).contains($0) })
                else { return false }
                time = time[..<sign]
            } else {
                return false
            }
        }
        return isDay(moment[..<mark]) && isTime(time)
    }

    private static func isInfinity(_ text: String) -> Bool {
        text == "infinity" || text == "-infinity"
    }

    private static func withoutEra(_ text: Substring) -> Substring {
        text.hasSuffix(" BC") ? text.dropLast(3) : text
    }

    private static func isDay(_ text: Substring) -> Bool {
        let parts = text.utf8.split(
            separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return parts.count == 3 && parts[0].count >= 4 && areDigits(parts[0])
            && parts.dropFirst().allSatisfy(areTwoDigits)
    }

    private static func areTwoDigits(_ text: Substring.UTF8View.SubSequence) -> Bool {
        text.count == 2 && areDigits(text)
    }

    private static func areDigits(_ text: Substring.UTF8View.SubSequence) -> Bool {
        !text.isEmpty && text.allSatisfy { (48...57).contains($0) }
    }
}

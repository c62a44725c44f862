internal import SQLiteRecords

/// Translates PostgreSQL's constant defaults to SQLite. The server fills in any other default, and
/// the device receives it with the answer.
enum DeviceDefault {
    /// Returns a default for a device.
    /// - Parameter expression: The default as `pg_get_expr` writes it, such as `'open'::character
    ///   varying`.
    /// - Returns: An SQL literal; nil if the default is no constant.
    static func text(_ expression: String, _ form: ColumnCodec) -> String? {
        guard let literal = literal(expression) else { return nil }
        switch form {
        case .boolean:
            switch literal.lowercased() {
            case "true", "t": return "1"
            case "false", "f": return "0"
            default: return nil
            }
        case .integer: return Int64(literal).map(String.init)
        case .real, .double:
            guard let number = Double(literal), number.isFinite else { return nil }
            return String(number)
        case .binary: return nil
        case .numeric:
            let isPlain = literal.utf8.allSatisfy { (48...57).contains($0) || $0 == 45 || $0 == 46 }
            return isPlain ? "'\(literal)'" : nil
        case .text, .uuid, .date, .time, .timestamp, .timestamptz, .json, .jsonb, .enumeration,
            .array:
            return SQLName.literal(literal)
        }
    }

    /// Returns the value of a constant without quotes and casts; nil for any other expression.
    private static func literal(_ expression: String) -> String? {
        var rest = Substring(expression)
        var value = ""
        if rest.first == "'" {
            rest.removeFirst()
            while let mark = rest.firstIndex(of: "'") {
                value += rest[..<mark]
                rest = rest[rest.index(after: mark)...]
                guard rest.first == "'" else { return hasOnlyCasts(rest) ? value : nil }
                value += "'"
                rest.removeFirst()
            }
            return nil
        }
        // A negative number is in parentheses if a cast follows.
        if rest.first == "(", let end = rest.firstIndex(of: ")") {
            value = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: ":") ?? rest.endIndex
            value = String(rest[..<end])
            rest = rest[end...]
        }
        let isNumber =
            !value.isEmpty
            && value.utf8.allSatisfy { (48...57).contains($0) || $0 == 45 || $0 == 46 }
            && !value.dropFirst().contains("-")
        guard isNumber || ["true", "false"].contains(value) else { return nil }
        return hasOnlyCasts(rest) ? value : nil
    }

    /// Returns whether only casts follow. These do not change a constant of the column's own type
    /// in a way that a device could see.
    private static func hasOnlyCasts(_ rest: Substring) -> Bool {
        guard !rest.isEmpty else { return true }
        guard rest.hasPrefix("::") else { return false }
        return rest.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || ("0"..."9").contains($0)
                || ":_ .,()[]\"".unicodeScalars.contains($0)
        }
    }
}

/// Writes a list of values as JSON text, which SQLite's `json_each` reads.
enum JSONList {
    /// Returns whether JSON can hold the value so that SQLite reads the same value back.
    static func canHold(_ value: SQLValue) -> Bool {
        switch value {
        case .null, .integer, .text: true
        case .real(let number): number.isFinite
        case .blob: false
        }
    }

    static func text(_ values: [SQLValue]) -> String {
        var text = "["
        for (index, value) in values.enumerated() {
            if index > 0 { text += "," }
            switch value {
            case .integer(let number): text += String(number)
            // This is the shortest text for the number. It contains a dot or an exponent.
            case .real(let number): text += number.description
            case .text(let string): append(string, to: &text)
            case .null, .blob: text += "null"
            }
        }
        return text + "]"
    }

    private static func append(_ string: String, to text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}

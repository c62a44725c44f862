/// A list of values as JSON text, which SQLite's `json_each` takes apart again.
enum JSONList {
    /// Whether a value has a form in JSON that comes back as the same value.
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
            // The shortest text that is read as the same number (a dot or an exponent is in it).
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

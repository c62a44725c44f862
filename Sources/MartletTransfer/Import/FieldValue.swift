import MartletCore
import MartletProtocol

/// Turns the text of a field into a value of an attribute's kind.
enum FieldValue {
    /// - Returns: The value, or what was expected instead.
    static func read(_ field: CSVField, as attribute: Attribute) -> Result<Value, Mismatch> {
        if field.isNull {
            guard attribute.isRequired, !attribute.hasDefault else { return .success(.null) }
            let hint = attribute.kind == .text ? "; write \"\" for an empty text" : ""
            return .failure(Mismatch("expected a value, found an empty field\(hint)"))
        }
        let text = field.text
        switch attribute.kind {
        case .integer: return integer(text)
        case .real: return real(text)
        case .boolean: return boolean(text)
        case .numeric:
            return isDecimal(text)
                ? .success(.text(text)) : .failure(Mismatch("expected a decimal number"))
        case .blob:
            return isBase64(text)
                ? .success(.text(text)) : .failure(Mismatch("expected binary data in base64"))
        case .text, .any: return .success(.text(text))
        }
    }

    /// A given id: an integer where the text is one, otherwise the text.
    static func given(_ text: String) -> Value {
        if let number = Int64(text), String(number) == text { return .integer(number) }
        return .text(text)
    }

    struct Mismatch: Error {
        let message: String

        init(_ message: String) {
            self.message = message
        }
    }

    private static func integer(_ text: String) -> Result<Value, Mismatch> {
        guard let number = Int64(text) else {
            return .failure(Mismatch("expected an integer of at most 64 bits"))
        }
        return .success(.integer(number))
    }

    private static func real(_ text: String) -> Result<Value, Mismatch> {
        guard text.utf8.first.map(startsNumber) ?? false, let number = Double(text),
            number.isFinite
        else { return .failure(Mismatch("expected a number")) }
        return .success(.real(number))
    }

    /// `Double` reads "inf" and "nan" too, and hexadecimal; those are no numbers here.
    private static func startsNumber(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
            || byte == UInt8(ascii: ".")
    }

    private static func boolean(_ text: String) -> Result<Value, Mismatch> {
        switch text.lowercased() {
        case "true", "t", "yes", "1": .success(.boolean(true))
        case "false", "f", "no", "0": .success(.boolean(false))
        default: .failure(Mismatch("expected true or false"))
        }
    }

    /// Digits with an optional sign and at most one point.
    static func isDecimal(_ text: String) -> Bool {
        var digits = 0
        var points = 0
        for (index, byte) in text.utf8.enumerated() {
            switch byte {
            case 48...57: digits += 1
            case UInt8(ascii: "."): points += 1
            case UInt8(ascii: "-") where index == 0, UInt8(ascii: "+") where index == 0: break
            default: return false
            }
        }
        return digits > 0 && points <= 1
    }

    private static func isBase64(_ text: String) -> Bool {
        let body = text.utf8.prefix { $0 != UInt8(ascii: "=") }
        let padding = text.utf8.count - body.count
        return text.utf8.count.isMultiple(of: 4) && padding <= 2
            && text.utf8.suffix(padding).allSatisfy { $0 == UInt8(ascii: "=") }
            && body.allSatisfy {
                isLetterOrDigit($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/")
            }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122: true
        default: false
        }
    }
}

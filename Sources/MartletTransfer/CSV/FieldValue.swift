import MartletModel
import MartletProtocol
import SQLiteRecords

/// Turns the text of a field into a value of an attribute's kind.
enum FieldValue {
    /// - Returns: The value, or a description of the expected text.
    static func read(_ field: CSVField, as attribute: Attribute) -> Result<Value, Mismatch> {
        if field.isNull {
            guard attribute.isRequired, !attribute.hasDefault else { return .success(.null) }
            let hint = attribute.kind == .text ? "; write \"\" for an empty text" : ""
            return .failure(Mismatch("expected a value, found an empty field\(hint)"))
        }
        guard field.text.utf8.count <= Limits.textBytes else {
            return .failure(
                Mismatch("expected at most \(Limits.textBytes >> 20) MiB, found more"))
        }
        return value(field, as: attribute.kind).flatMap { value in
            // Values that the server would refuse are refused here, before anything is written.
            RecordTable.mismatch(value, attribute).map { .failure(Mismatch($0)) } ?? .success(value)
        }
    }

    private static func value(
        _ field: CSVField, as kind: AttributeKind
    ) -> Result<Value, Mismatch> {
        let text = field.text
        switch kind {
        case .integer: return integer(text)
        case .real: return real(text)
        case .boolean: return boolean(text)
        case .any: return .success(field.isQuoted ? .text(text) : untyped(text))
        case .numeric, .blob, .text: return .success(.text(text))
        }
    }

    /// Returns the value of an unquoted field in a column without a type: a number if export writes
    /// that number in this form, else the text.
    private static func untyped(_ text: String) -> Value {
        if let number = Int64(text), String(number) == text { return .integer(number) }
        if let number = Double(text), number.isFinite, String(number) == text {
            return .real(number)
        }
        return .text(text)
    }

    /// Returns the field for a text in a column without a type, so that it is read back as a text.
    static func untypedField(_ text: String) -> CSVField {
        CSVField(text, isQuoted: untyped(text) != .text(text))
    }

    /// Returns a given id: an integer if the text is one, otherwise the text. `EntityType.givenID`
    /// turns it into an id of its type.
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
        guard text.utf8.allSatisfy(isOfNumber), let number = Double(text), number.isFinite
        else { return .failure(Mismatch("expected a number")) }
        return .success(.real(number))
    }

    /// Returns whether a byte can be part of a number. `Double` also reads "inf", "nan" and
    /// hexadecimal, which are no numbers here.
    private static func isOfNumber(_ byte: UInt8) -> Bool {
        (48...57).contains(byte) || "+-.eE".utf8.contains(byte)
    }

    private static func boolean(_ text: String) -> Result<Value, Mismatch> {
        switch text.lowercased() {
        case "true", "t", "yes", "1": .success(.boolean(true))
        case "false", "f", "no", "0": .success(.boolean(false))
        default: .failure(Mismatch("expected true or false"))
        }
    }
}

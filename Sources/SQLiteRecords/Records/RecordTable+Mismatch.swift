package import MartletModel
internal import MartletProtocol

extension RecordTable {
    /// Returns nil if the value fits the attribute's kind, else a sentence without the value, such
    /// as “expected an integer, found text”. Null fits every kind: the database decides whether it
    /// is allowed.
    /// - Complexity: O(*n*) in the length of a text.
    package static func mismatch(_ value: Value, _ attribute: Attribute) -> String? {
        if case .text(let text) = value, let fault = tooLong(text, "text") { return fault }
        switch (value, attribute.kind) {
        case (.null, _), (.boolean, .boolean), (.integer, .integer), (.integer, .real),
            (.integer, .any):
            return nil
        case (.real(let number), .real), (.real(let number), .any):
            return number.isFinite ? nil : "expected a finite number, found an infinity or NaN"
        case (.text(let text), .text), (.text(let text), .any):
            return mismatch(text)
        case (.text(let text), .blob):
            return Base64.decode(text) == nil ? "expected base64 text, found other text" : nil
        case (.text(let text), .numeric):
            return DecimalText.mismatch(text, keepsDigits: attribute.keepsDigits)
        default:
            return "expected \(words(attribute.kind)), found \(words(value))"
        }
    }

    /// Returns nil if a text column of every storage can hold the text, else a sentence without it.
    package static func mismatch(_ text: String) -> String? {
        if let fault = tooLong(text, "text") { return fault }
        // PostgreSQL cannot store NUL in text, and the rule is the same for all storages.
        return text.utf8.contains(0) ? "expected text without NUL, found one" : nil
    }

    /// Returns nil if the id fits the type's key, else a sentence without the id.
    package static func mismatch(_ id: RecordID, _ type: EntityType) -> String? {
        switch (id, type.keyKind) {
        case (.integer(let number), .integer):
            return number == 0 ? "expected an id, found zero" : nil
        case (.text(let text), .text):
            if text.isEmpty { return "expected an id, found empty text" }
            if let fault = tooLong(text, "an id") { return fault }
            return text.utf8.contains(0) ? "expected an id without NUL, found one" : nil
        case (.integer, .text): return "expected a text id, found an integer"
        case (.text, .integer): return "expected an integer id, found text"
        }
    }

    private static func tooLong(_ text: String, _ what: String) -> String? {
        let (longest, length) = (Limits.textBytes, text.utf8.count)
        guard length > longest else { return nil }
        return "expected \(what) of at most \(longest >> 20) MiB, found \(length) bytes"
    }

    private static func words(_ kind: AttributeKind) -> String {
        switch kind {
        case .integer: "an integer"
        case .real: "a number"
        case .text: "text"
        case .blob: "base64 text"
        case .boolean: "true or false"
        case .numeric: "a decimal number as text"
        case .any: "a number or text"
        }
    }

    private static func words(_ value: Value) -> String {
        switch value {
        case .null: "null"
        case .boolean: "true or false"
        case .integer: "an integer"
        case .real: "a number with a fraction or exponent"
        case .text: "text"
        }
    }
}

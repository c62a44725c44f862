/// A value of the result, written as JSON with its members in the order given.
indirect enum JSONText {
    case null
    case boolean(Bool)
    case integer(Int64)
    case real(Double)
    case text(String)
    case list([JSONText])
    case object([(String, JSONText)])

    static func optional(_ text: String?) -> JSONText { text.map { .text($0) } ?? .null }
    static func optional(_ number: Int64?) -> JSONText { number.map { .integer($0) } ?? .null }

    var description: String {
        switch self {
        case .null: "null"
        case .boolean(let flag): flag ? "true" : "false"
        case .integer(let number): String(number)
        case .real(let number): number.isFinite ? String(number) : "null"
        case .text(let text): Self.quoted(text)
        case .list(let items): "[" + items.map(\.description).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0) + ":" + $1.description }.joined(separator: ",")
                + "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case let control where control.value < 32:
                let digits = String(control.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}

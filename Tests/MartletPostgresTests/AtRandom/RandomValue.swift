import Foundation

/// A value of a column, as SQL says it and as a device sends it. Some come again and again, so that they
/// meet; some stand at the edges of what there is.
struct RandomValue {
    let sql: String
    let json: String

    private init(_ sql: String, _ json: String) {
        self.sql = sql
        self.json = json
    }

    private static func number(_ text: String) -> RandomValue {
        RandomValue(text.hasPrefix("-") ? "(\(text))" : text, text)
    }

    private static func text(_ text: String) -> RandomValue {
        RandomValue("'\(text.replacing("'", with: "''"))'", json(text))
    }

    static let null = RandomValue("NULL", "null")

    /// A JSON string.
    static func json(_ text: String) -> String { "\"\(escaped(text))\"" }

    /// A text as it stands between the quotes of a JSON string.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": escaped += "\\\(scalar)"
            case _ where scalar.value < 32:
                escaped += "\\u00" + (scalar.value < 16 ? "0" : "")
                escaped += String(scalar.value, radix: 16)
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// A key of the type; few, so that they meet.
    static func key(_ type: String, _ chance: inout Chance) -> RandomValue {
        let isAtEdge = chance.percent(4)
        switch type {
        case "int8" where isAtEdge:
            return number(
                chance.one(of: [
                    "9223372036854775807", "-9223372036854775807", "0", "-1", "4611686018427387905",
                ]))
        case "int2", "int4", "int8": return number(String(chance.number(1..<10)))
        case "uuid": return text("00000000-0000-4000-8000-00000000000\(chance.number(1..<10))")
        default:
            if isAtEdge { return text(chance.one(of: ["", " ", "a\tb", "/../x", "null", "%41"])) }
            return text(
                chance.one(of: ["a", "A", "b", "c", "é", "e\u{301}", "it's", "q\"", "b\\"]))
        }
    }

    /// A value for a column that is not the key.
    static func value(
        _ column: LiveTable.Column, keys: [UInt32: String], _ chance: inout Chance
    ) -> RandomValue {
        if !column.isRequired, chance.percent(15) { return .null }
        if let target = column.target, let type = keys[target] { return key(type, &chance) }
        switch column.type {
        case "bool":
            return chance.percent(50) ? RandomValue("true", "true") : .init("false", "false")
        case "int2", "int4", "int8": return integer(column.type, &chance)
        case "float4", "float8": return real(column.type, &chance)
        case "bytea":
            let (hex, base64) = chance.one(of: [("", ""), ("00ff", "AP8="), ("616263", "YWJj")])
            return RandomValue("'\\x\(hex)'", json(base64))
        case "text" where chance.percent(1):
            return RandomValue("repeat('é', 500000)", json(String(repeating: "é", count: 500_000)))
        default: break
        }
        if let label = column.labels.first {
            return text(chance.percent(50) ? label : chance.one(of: column.labels))
        }
        return text(chance.one(of: texts[column.type] ?? texts["text"] ?? []))
    }

    private static func integer(_ type: String, _ chance: inout Chance) -> RandomValue {
        if chance.percent(8) {
            switch type {
            case "int2": return number(chance.one(of: ["32767", "-32768"]))
            case "int4": return number(chance.one(of: ["2147483647", "-2147483648"]))
            default:
                return RandomValue(
                    "(-9223372036854775807 - 1)", "-9223372036854775808")
            }
        }
        return number(String(chance.number(-1..<6)))
    }

    private static func real(_ type: String, _ chance: inout Chance) -> RandomValue {
        if chance.percent(3) {
            return RandomValue(chance.one(of: ["'NaN'", "'Infinity'", "'-Infinity'"]), "1.5")
        }
        var all = ["0", "0.5", "-0.0", "1e-5", "123456.75", "3"]
        if type == "float8" { all += ["5e-324", "1.7976931348623157e308", "0.1"] }
        return number(chance.one(of: all))
    }

    private static let texts: [String: [String]] = [
        "text": [
            "a", "A", "b", "", "é", "e\u{301}", "it's", "q\"", "\\", "a\nb\u{1}", "\u{10ffff}", " ",
            "{}",
        ],
        "varchar": ["a", "A", "b", "", "é", "it's", "a much longer text"],
        "bpchar": ["a", "ab", "abc", "", "é"],
        "numeric": ["0", "1.50", "-1.5", "99999.99", "0.000", "12345678901234567890.5", "NaN"],
        "uuid": (1...4).map { "11111111-0000-4000-8000-00000000000\($0)" },
        "date": ["2026-11-25", "0044-03-15 BC", "infinity", "9999-12-31", "2024-02-29"],
        "time": ["09:30:00", "23:59:59.999999", "00:00:00"],
        "timestamp": ["2026-11-25 09:30:00", "-infinity", "1999-12-31 23:59:59.5"],
        "timestamptz": ["2026-11-25 09:30:00+00", "infinity", "2026-11-25 09:30:00+02"],
        "json": ["{\"a\": 1}", "[1,2]", "null", "\"x\"", "1.50", "{\"a\":1,\"a\":2}"],
        "jsonb": ["{\"a\": 1}", "[1, 2]", "null", "\"x\"", "1.50", "{\"b\":{},\"a\":[]}"],
        "_text": ["{a,b}", "{}", "{NULL,\"null\"}", "{\"a b\",\"\\\"\"}"],
        "_int4": ["{1,2}", "{}", "{NULL}", "{{1},{2}}"],
    ]
}

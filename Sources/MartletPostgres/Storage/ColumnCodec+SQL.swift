import MartletModel
import PostgresKit

extension PostgresColumn {
    /// The type under which a value of the column is given to a statement; texts stand for types
    /// that have no other parameter.
    var parameterType: String {
        switch form {
        case .boolean: "boolean"
        // The wider type, so that a number too large is the server's to refuse.
        case .integer: "bigint"
        case .real: "real"
        case .double: "double precision"
        case .numeric: "numeric"
        case .uuid: "uuid"
        case .date: "date"
        case .time: "time"
        case .timestamp: "timestamp"
        case .timestamptz: "timestamptz"
        case .binary: "bytea"
        case .text, .json, .jsonb, .enumeration, .array: "text"
        }
    }

    /// An expression of `parameterType` as it is assigned to the column. Limits of the declared
    /// type are left to the assignment: a cast would cut a long text without a word.
    func assigned(_ expression: String) -> String {
        switch form {
        case .json: "(\(expression))::json"
        case .jsonb: "(\(expression))::jsonb"
        case .enumeration: "(\(expression))::\(declaration)"
        case .array: "(\(expression))::\(Self.withoutLimits(declaration))"
        default: expression
        }
    }

    /// `character varying(20)[]` without what stands in parentheses.
    private static func withoutLimits(_ declaration: String) -> String {
        guard !declaration.contains("\"") else { return declaration }
        var text = ""
        var depth = 0
        for character in declaration {
            if character == "(" { depth += 1 }
            if depth == 0 { text.append(character) }
            if character == ")" { depth -= 1 }
        }
        return text
    }

    /// One field of a result, as the wire has it.
    /// - Throws: `PostgresError` with `isUnsendable` where no device can be sent it.
    func value(
        of rows: PostgresRows, _ row: Int, _ field: Int
    ) throws(PostgresError) -> Value {
        let stored = try rows.value(row, field)
        do throws(UnsendableValue) {
            return try value(from: stored)
        } catch {
            throw PostgresError(.invalidValue, error.reason)
        }
    }
}

extension PostgresError {
    /// Whether it says that a row cannot be sent to any device.
    var isUnsendable: Bool { kind == .invalidValue && sqlState == nil }
}

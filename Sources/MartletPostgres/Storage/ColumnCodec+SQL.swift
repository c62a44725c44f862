import MartletModel
import PostgresKit

extension PostgresColumn {
    /// The type of a statement's parameter for a value of the column. Types without a parameter
    /// type of their own use text.
    var parameterType: String {
        switch form {
        case .boolean: "boolean"
        // The wider type lets the server refuse a number that is too large.
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

    /// Returns an expression of `parameterType` as it is assigned to the column. The assignment
    /// checks the limits of the declared type; a cast would silently cut a long text.
    func assigned(_ expression: String) -> String {
        switch form {
        case .json: "(\(expression))::json"
        case .jsonb: "(\(expression))::jsonb"
        case .enumeration: "(\(expression))::\(declaration)"
        case .array: "(\(expression))::\(Self.withoutLimits(declaration))"
        default: expression
        }
    }

    /// Returns a declaration such as `character varying(20)[]` without the parts in parentheses.
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

    /// Returns one field of a result as the wire has it.
    /// - Throws: `PostgresError` with `isUnsendable` if no device can receive it.
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
    /// Whether the error means that no device can receive a row.
    var isUnsendable: Bool { kind == .invalidValue && sqlState == nil }
}

internal import CPostgres

/// The answer to one statement. It decodes a value from the server's bytes when the caller asks for
/// it.
public final class PostgresRows {
    private let result: OpaquePointer
    private let types: TypeCatalogue

    /// Takes ownership of a result.
    init(_ result: OpaquePointer, _ types: TypeCatalogue) {
        self.result = result
        self.types = types
    }

    deinit {
        PQclear(result)
    }

    /// The number of rows returned.
    public var count: Int { Int(PQntuples(result)) }

    public var columnCount: Int { Int(PQnfields(result)) }

    /// The names of the columns. A name that two columns share is listed twice.
    /// - Complexity: O(*n*) in the number of columns.
    public var columnNames: [String] {
        (0..<Int32(columnCount)).map { PQfname(result, $0).map { String(cString: $0) } ?? "" }
    }

    /// The number of rows that INSERT, UPDATE, DELETE, MERGE, COPY or SELECT reports; 0 for other
    /// statements.
    public var affectedCount: Int {
        PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
    }

    /// The command tag that the server reports, such as `INSERT 0 1`.
    public var tag: String {
        PQcmdStatus(result).map { String(cString: $0) } ?? ""
    }

    /// Returns whether a value is null, or the answer has no such row: what the row tells of may be
    /// gone, such as a table that another session drops.
    public func isNull(_ row: Int, _ column: Int) -> Bool {
        precondition(
            row >= 0 && column >= 0 && column < columnCount,
            "row \(row), column \(column) of \(columnCount) columns")
        return row >= count || PQgetisnull(result, Int32(row), Int32(column)) == 1
    }

    /// Returns a value.
    /// - Throws: `PostgresError` `.invalidValue` if the answer has no such row, or the server's
    ///   bytes do not fit the type that the server names.
    public func value(_ row: Int, _ column: Int) throws(PostgresError) -> PostgresValue {
        if isNull(row, column) {
            guard row < count else {
                throw PostgresError(
                    .invalidValue,
                    "the answer has \(count) rows; \(columnNames[column]) of row \(row) is asked for"
                )
            }
            return .null
        }
        let number = PQftype(result, Int32(column))
        let bytes = bytes(row, column)
        if PQfformat(result, Int32(column)) == 0 {
            return .text(String(decoding: bytes, as: UTF8.self))
        }
        guard let value = ValueDecoder.value(bytes, of: number, types) else {
            throw mismatch(row, column, "a value of type \(number)")
        }
        return value
    }

    /// Returns an integer of any width.
    /// - Throws: `PostgresError` `.invalidValue` for any other value, null included.
    public func integer(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        guard case .integer(let value) = try value(row, column) else {
            throw mismatch(row, column, "an integer")
        }
        return value
    }

    /// Returns a text of any type: text, enumeration, JSON, UUID or numeric.
    /// - Throws: `PostgresError` `.invalidValue` for any other value, null included.
    public func text(_ row: Int, _ column: Int) throws(PostgresError) -> String {
        switch try value(row, column) {
        case .text(let text), .json(let text), .uuid(let text), .numeric(let text): return text
        default: throw mismatch(row, column, "text")
        }
    }

    /// Returns the bytes of a bytea.
    /// - Throws: `PostgresError` `.invalidValue` for any other value, null included.
    public func binary(_ row: Int, _ column: Int) throws(PostgresError) -> [UInt8] {
        guard case .binary(let bytes) = try value(row, column) else {
            throw mismatch(row, column, "a bytea")
        }
        return bytes
    }

    /// Returns a boolean.
    /// - Throws: `PostgresError` `.invalidValue` for any other value, null included.
    public func boolean(_ row: Int, _ column: Int) throws(PostgresError) -> Bool {
        guard case .boolean(let value) = try value(row, column) else {
            throw mismatch(row, column, "a boolean")
        }
        return value
    }

    /// Returns all values, row by row.
    /// - Throws: `PostgresError` `.invalidValue` if the server's bytes do not fit the type that the
    ///   server names.
    /// - Complexity: O(*n*) in the number of values.
    public func values() throws(PostgresError) -> [[PostgresValue]] {
        var rows: [[PostgresValue]] = []
        rows.reserveCapacity(count)
        for row in 0..<count {
            var values: [PostgresValue] = []
            values.reserveCapacity(columnCount)
            for column in 0..<columnCount { values.append(try value(row, column)) }
            rows.append(values)
        }
        return rows
    }

    private func bytes(_ row: Int, _ column: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: PQgetvalue(result, Int32(row), Int32(column)),
            count: Int(PQgetlength(result, Int32(row), Int32(column))))
    }

    private func mismatch(_ row: Int, _ column: Int, _ expected: String) -> PostgresError {
        PostgresError(
            .invalidValue, "column \(columnNames[column]) does not hold \(expected) there")
    }
}

@available(*, unavailable)
extension PostgresRows: Sendable {}

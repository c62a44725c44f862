internal import CSQLite

/// A prepared statement. Parameters count from 1, columns from 0, as in SQLite's manual.
///
/// Values are copied in and out; nothing points into SQLite's memory once a call has returned.
public final class Statement {
    private let handle: Handle
    let pointer: OpaquePointer
    public let sql: String
    public let columnCount: Int32
    public let parameterCount: Int32
    /// The tables that the statement reads and writes; empty if the connection does not track them.
    public internal(set) var access = TableAccess()
    /// An object that the caller keeps together with the statement.
    public var companion: AnyObject?
    /// The reason why a value could not be bound; SQLITE_OK if all were bound.
    private var bindFailure = SQLITE_OK
    /// The reason why the caller's own check refused a value; nil if it refused none.
    private var refusedBinding: String?
    /// Memory for short texts, one slot for each parameter; nil before the first text.
    private var slots: UnsafeMutablePointer<UInt8>?

    init(handle: Handle, sql: String) throws(SQLiteError) {
        let (code, pointer, rest) = Self.compiled(sql, on: handle)
        guard code == SQLITE_OK else { throw handle.error(code, sql: sql) }
        guard let pointer else {
            throw SQLiteError(extendedCode: SQLITE_ERROR, message: "empty statement", sql: sql)
        }
        if let rest {
            sqlite3_finalize(pointer)
            throw SQLiteError(extendedCode: SQLITE_ERROR, message: rest, sql: sql)
        }
        self.handle = handle
        self.pointer = pointer
        self.sql = sql
        columnCount = sqlite3_column_count(pointer)
        parameterCount = sqlite3_bind_parameter_count(pointer)
    }

    deinit {
        sqlite3_finalize(pointer)
        slots?.deallocate()
    }

    /// Compiles the first statement of a text. `rest` is a sentence about later text that would
    /// never run: SQLite itself stops silently at a NUL and at the end of the first statement.
    private static func compiled(
        _ sql: String, on handle: Handle
    ) -> (code: Int32, pointer: OpaquePointer?, rest: String?) {
        sql.withCString { text in
            var pointer: OpaquePointer?
            var tail: UnsafePointer<CChar>?
            let code = sqlite3_prepare_v3(
                handle.pointer, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, &tail)
            guard code == SQLITE_OK, let tail else { return (code, pointer, nil) }
            if tail.pointee == 0 {
                let ended = tail - text
                return (code, pointer, ended < sql.utf8.count ? "NUL in the statement" : nil)
            }
            // Spaces and comments after it are no second statement.
            var second: OpaquePointer?
            let next = sqlite3_prepare_v2(handle.pointer, tail, -1, &second, nil)
            sqlite3_finalize(second)
            let isAlone = next == SQLITE_OK && second == nil
            return (code, pointer, isAlone ? nil : "more than one statement; run them one by one")
        }
    }

    /// Whether the statement has been stepped, and has neither ended nor been reset.
    public var isBusy: Bool { sqlite3_stmt_busy(pointer) != 0 }

    /// Moves to the next row.
    /// - Returns: False at the end.
    /// - Throws: `SQLiteError` if the statement fails, or a value was not bound.
    public func step() throws(SQLiteError) -> Bool {
        if let refusedBinding { throw SQLiteError.mismatch(refusedBinding, sql: sql) }
        guard bindFailure == SQLITE_OK else {
            throw SQLiteError(
                extendedCode: bindFailure, message: String(cString: sqlite3_errstr(bindFailure)),
                sql: sql)
        }
        try handle.makeUp()
        let code = sqlite3_step(pointer)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let error = handle.error(code, sql: sql)
            sqlite3_reset(pointer)
            throw error
        }
    }

    /// Runs to the end, ignores the rows, and resets the statement.
    /// - Throws: `SQLiteError` if the statement fails.
    public func run() throws(SQLiteError) {
        while try step() {}
        sqlite3_reset(pointer)
    }

    /// Steps through all rows, calls `body` at each, and resets the statement at the end or after
    /// an error.
    /// - Throws: The error of `body`, or the `SQLiteError` of the statement.
    /// - Complexity: O(*n*) in the number of rows, apart from the work of the statement and `body`.
    public func rows<Element>(
        _ body: (Statement) throws(SQLiteError) -> Element
    ) throws(SQLiteError) -> [Element] {
        defer { reset() }
        var elements: [Element] = []
        while try step() {
            elements.append(try body(self))
        }
        return elements
    }

    /// Ends the current run and clears all bindings.
    public func reset() {
        sqlite3_reset(pointer)
        sqlite3_clear_bindings(pointer)
        bindFailure = SQLITE_OK
        refusedBinding = nil
    }

    /// Ends the current run and keeps the bindings.
    public func rewind() {
        sqlite3_reset(pointer)
    }

    /// Returns SQLite's count of virtual machine steps since the last call.
    public func takeVirtualMachineSteps() -> Int32 {
        sqlite3_stmt_status(pointer, SQLITE_STMTSTATUS_VM_STEP, 1)
    }

    /// Returns the number of a named parameter; 0 if there is none.
    public func parameterIndex(_ name: String) -> Int32 {
        sqlite3_bind_parameter_index(pointer, name)
    }
}

// MARK: - Binding

extension Statement {
    /// SQLITE_TRANSIENT: SQLite copies the bytes before the call returns.
    private static var copied: sqlite3_destructor_type {
        unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    }

    public func bind(_ index: Int32, integer: Int64) {
        check(sqlite3_bind_int64(pointer, index, integer))
    }

    public func bind(_ index: Int32, real: Double) {
        check(sqlite3_bind_double(pointer, index, real))
    }

    public func bind(_ index: Int32, text: String) {
        var text = text
        text.withUTF8 { bindText(index, $0) }
    }

    /// The bytes of a parameter's slot: enough for most keys, names and dates.
    private static let slotByteCount = 128
    /// The largest number of parameters for which a statement has slots.
    private static let mostSlots: Int32 = 64

    /// Binds UTF-8.
    ///
    /// A short text is copied to its parameter's slot, which holds it until the parameter is bound
    /// again. Otherwise SQLite would allocate and free a copy each time. Nothing is bound while the
    /// statement runs, so the slot does not change meanwhile.
    private func bindText(_ index: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress else {
            check(sqlite3_bind_text(pointer, index, "", 0, Self.copied))
            return
        }
        var source = start
        var destructor: sqlite3_destructor_type? = Self.copied
        if bytes.count <= Self.slotByteCount, parameterCount <= Self.mostSlots,
            index >= 1, index <= parameterCount
        {
            let slot = slot(index)
            slot.update(from: start, count: bytes.count)
            source = UnsafePointer(slot)
            // SQLITE_STATIC: the bytes stay.
            destructor = nil
        }
        let text = UnsafeRawPointer(source).assumingMemoryBound(to: CChar.self)
        check(
            sqlite3_bind_text64(
                pointer, index, text, UInt64(bytes.count), destructor, UInt8(SQLITE_UTF8)))
    }

    private func slot(_ index: Int32) -> UnsafeMutablePointer<UInt8> {
        let all: UnsafeMutablePointer<UInt8>
        if let slots {
            all = slots
        } else {
            all = .allocate(capacity: Int(parameterCount) * Self.slotByteCount)
            slots = all
        }
        return all + (Int(index) - 1) * Self.slotByteCount
    }

    /// Binds a text unless it holds a NUL, which ends a text for many programs.
    /// - Returns: Whether it was bound.
    public func bindUnlessNUL(_ index: Int32, text: String) -> Bool {
        // A native string gives its own bytes; any other is converted first.
        if let isBound = text.utf8.withContiguousStorageIfAvailable({
            bindUnlessNUL(index, bytes: $0)
        }) {
            return isBound
        }
        var text = text
        return text.withUTF8 { bindUnlessNUL(index, bytes: $0) }
    }

    private func bindUnlessNUL(_ index: Int32, bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        if let start = bytes.baseAddress, memchr(start, 0, bytes.count) != nil { return false }
        bindText(index, bytes)
        return true
    }

    public func bind(_ index: Int32, blob: [UInt8]) {
        blob.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress, !bytes.isEmpty {
                check(
                    sqlite3_bind_blob64(
                        pointer, index, start, UInt64(bytes.count), Self.copied))
            } else {
                check(sqlite3_bind_zeroblob(pointer, index, 0))
            }
        }
    }

    /// Refuses a value that has no form in its column. The next step then throws an error with
    /// `isMismatch` and writes nothing.
    /// - Parameter reason: A sentence without the value.
    public func refuseBinding(_ reason: String) {
        refusedBinding = reason
    }

    public func bindNull(_ index: Int32) {
        check(sqlite3_bind_null(pointer, index))
    }

    /// Checks the result of a bind. A bind fails for an index that does not exist or a running
    /// statement; both are the caller's mistakes. It also fails for a value over SQLite's size
    /// limit and for lack of memory, which the next step reports.
    private func check(_ code: Int32) {
        if code == SQLITE_TOOBIG || code == SQLITE_NOMEM {
            bindFailure = code
            return
        }
        precondition(code == SQLITE_OK, "bind failed with \(code) in \(sql)")
    }
}

// MARK: - Reading

extension Statement {
    public enum Storage: Sendable {
        case integer
        case real
        case text
        case blob
        case null
    }

    public func name(_ column: Int32) -> String {
        sqlite3_column_name(pointer, column).map { String(cString: $0) } ?? ""
    }

    public func storage(_ column: Int32) -> Storage {
        switch sqlite3_column_type(pointer, column) {
        case SQLITE_INTEGER: .integer
        case SQLITE_FLOAT: .real
        case SQLITE_TEXT: .text
        case SQLITE_BLOB: .blob
        default: .null
        }
    }

    public func isNull(_ column: Int32) -> Bool {
        sqlite3_column_type(pointer, column) == SQLITE_NULL
    }

    public func integer(_ column: Int32) -> Int64 {
        sqlite3_column_int64(pointer, column)
    }

    public func real(_ column: Int32) -> Double {
        sqlite3_column_double(pointer, column)
    }

    /// Returns the start of a column's text; nil for a null, and if there was no memory to convert
    /// the value. In the second case the connection's next step fails.
    func textStart(_ column: Int32) -> UnsafePointer<UInt8>? {
        if let start = sqlite3_column_text(pointer, column) { return start }
        handle.noteLostValue()
        return nil
    }

    /// Returns the column as text. Bytes that are not UTF-8 are repaired.
    /// - Complexity: O(*n*) in the column's bytes.
    public func text(_ column: Int32) -> String {
        guard let start = textStart(column) else { return "" }
        let count = Int(sqlite3_column_bytes(pointer, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns the column as text; nil if its bytes are not UTF-8.
    /// - Complexity: O(*n*) in the column's bytes.
    public func validatedText(_ column: Int32) -> String? {
        guard let start = textStart(column) else { return "" }
        let count = Int(sqlite3_column_bytes(pointer, column))
        return String(
            validating: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Returns whether the bytes of a column that holds text are UTF-8.
    /// - Complexity: O(*n*) in the column's bytes.
    public func isUTF8(_ column: Int32) -> Bool {
        guard let start = textStart(column) else { return true }
        let count = Int(sqlite3_column_bytes(pointer, column))
        let bytes = UnsafeBufferPointer(start: start, count: count)
        // Most texts are ASCII, which needs no string.
        return bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
    }

    /// Returns the integer stored in the column; nil if the column holds another kind of value.
    public func storedInteger(_ column: Int32) -> Int64? {
        guard sqlite3_column_type(pointer, column) == SQLITE_INTEGER else { return nil }
        return sqlite3_column_int64(pointer, column)
    }

    /// Returns the real number stored in the column; nil if the column holds another kind of value.
    public func storedReal(_ column: Int32) -> Double? {
        guard sqlite3_column_type(pointer, column) == SQLITE_FLOAT else { return nil }
        return sqlite3_column_double(pointer, column)
    }

    /// Returns the text stored in the column; nil if the column holds another kind of value, or
    /// bytes that are not UTF-8.
    /// - Complexity: O(*n*) in the column's bytes.
    public func storedText(_ column: Int32) -> String? {
        guard sqlite3_column_type(pointer, column) == SQLITE_TEXT,
            let start = textStart(column)
        else { return nil }
        // SQLite ends every text with a NUL. The standard library has only the initializer for such
        // texts compiled for bytes, and it validates once.
        let end = Int(sqlite3_column_bytes(pointer, column))
        let characters = UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self)
        if let text = String(validatingCString: characters), text.utf8.count == end {
            return text
        }
        return validatedText(column)
    }

    /// Returns the column's bytes.
    /// - Complexity: O(*n*) in the column's bytes.
    public func blob(_ column: Int32) -> [UInt8] {
        let count = Int(sqlite3_column_bytes(pointer, column))
        guard count > 0 else { return [] }
        guard let start = sqlite3_column_blob(pointer, column) else {
            handle.noteLostValue()
            return []
        }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
    }
}

@available(*, unavailable)
extension Statement: Sendable {}

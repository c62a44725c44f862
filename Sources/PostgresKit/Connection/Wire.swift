internal import CPostgres
internal import ConnectionKit

/// The handle of one connection. It waits for the socket: until there is a result, until a
/// deadline, or until another thread signals `wake`.
final class Wire {
    /// The library's handle; nil when the connection is finished. The library treats nil as a lost
    /// connection.
    private(set) var pointer: OpaquePointer?
    let wake: Wake
    private let answer: Duration?
    /// Whether the work under way may have happened if the connection is lost now.
    private(set) var mayCommit = false
    /// Whether this side has given up the statement under way.
    private(set) var isGivenUp = false
    /// Whether the answer did not arrive in time, or waiting failed. The connection cannot be used
    /// then.
    private(set) var isCut = false
    private var deadline: Deadline?
    /// The count of the library's notices; see `PostgresConnection.takeUnreplicated`.
    private let unreplicated = UnsafeMutablePointer<CInt>.allocate(capacity: 1)

    init(_ pointer: OpaquePointer, _ wake: Wake, answer: Duration?) {
        self.pointer = pointer
        self.wake = wake
        self.answer = answer
        unreplicated.initialize(to: 0)
    }

    deinit {
        finish()
        unreplicated.deallocate()
    }

    /// Counts notices of the server from now on, in place of printing them.
    func takeNotices() {
        martlet_take_notices(pointer, unreplicated)
    }

    /// Returns the number of commits since the last call that did not wait for the standbys.
    func takeUnreplicated() -> Int {
        defer { unreplicated.pointee = 0 }
        return Int(unreplicated.pointee)
    }

    /// Closes the connection.
    func finish() {
        PQfinish(pointer)
        pointer = nil
    }

    /// Marks the connection as lost, because the work under way cannot be completed.
    func cut() {
        isCut = true
    }

    var isLost: Bool { isCut || PQstatus(pointer) == CONNECTION_BAD }

    /// Prepares for sending a statement.
    func begin(mayCommit: Bool) {
        self.mayCommit = mayCommit
        isGivenUp = false
        deadline = answer.map { Deadline(after: $0) }
    }

    /// Limits the present wait, in place of the usual limit.
    func limit(_ duration: Duration?) {
        deadline = duration.map { Deadline(after: $0) }
    }

    /// The first line of the library's last error message.
    var words: String {
        guard let words = PQerrorMessage(pointer) else { return "" }
        return String(cString: words).split(separator: "\n").first.map(String.init) ?? ""
    }

    /// Writes out the queued bytes, and reads meanwhile, because a server that cannot write stops
    /// reading.
    func flush() throws(PostgresError) {
        while true {
            let left = PQflush(pointer)
            if left == 0 { return }
            guard left == 1, !isCut else { throw lost() }
            try step(writing: true)
        }
    }

    /// Waits for the socket, and reads the bytes that arrived.
    func step(writing: Bool) throws(PostgresError) {
        if try wait(writing: writing).contains(.readable), PQconsumeInput(pointer) == 0 {
            throw lost()
        }
    }

    /// Returns the next result; nil at the end of a statement's results. The caller clears it.
    func result() throws(PostgresError) -> OpaquePointer? {
        while PQisBusy(pointer) == 1 {
            guard !isCut else { throw lost() }
            if try wait(writing: false).contains(.readable), PQconsumeInput(pointer) == 0 {
                // The server's last message before it hung up is still unread.
                break
            }
        }
        return PQgetResult(pointer)
    }

    /// Waits for the socket, once.
    /// - Throws: `PostgresError` if the time is over. The connection cannot be used then.
    private func wait(writing: Bool) throws(PostgresError) -> Wake.Outcome {
        let outcome: Wake.Outcome
        do {
            outcome = try wake.wait(
                PQsocket(pointer), reading: true, writing: writing, until: deadline,
                heedsSignals: !isGivenUp)
        } catch {
            isCut = true
            throw PostgresError(mayCommit ? .unknownOutcome : .lost, "\(error)")
        }
        if outcome.isEmpty {
            isCut = true
            throw PostgresError(
                mayCommit ? .unknownOutcome : .lost,
                "the server did not answer in time; the connection was given up")
        }
        if outcome.contains(.woken) { giveUp() }
        return outcome
    }

    /// Waits for messages that the server sends unasked.
    /// - Returns: Whether there is something to read. False if the time is over or another thread
    ///   signalled `wake`.
    func listen(_ duration: Duration?) throws(PostgresError) -> Bool {
        do {
            return try wake.wait(
                PQsocket(pointer), reading: true, writing: false,
                until: duration.map { Deadline(after: $0) }
            ).contains(.readable)
        } catch {
            isCut = true
            throw PostgresError(.lost, "\(error)")
        }
    }

    /// Asks the server to stop its work. The server still answers, with a result or an error.
    func giveUp() {
        isGivenUp = true
        // The answer arrives soon, or the server is gone.
        deadline = Deadline(after: .seconds(5))
        guard let cancel = PQgetCancel(pointer) else { return }
        var words: [CChar] = Array(repeating: 0, count: 256)
        _ = PQcancel(cancel, &words, Int32(words.count))
        PQfreeCancel(cancel)
    }

    /// Returns the error for a lost connection.
    func lost(sql: String? = nil) -> PostgresError {
        let words = words
        return PostgresError(
            mayCommit ? .unknownOutcome : .lost,
            words.isEmpty ? "the connection to the server was lost" : words, sql: sql)
    }

    /// Returns the error that a failed result describes.
    func error(_ result: OpaquePointer, sql: String?) -> PostgresError {
        func field(_ text: UnsafePointer<CChar>?) -> String? { text.map { String(cString: $0) } }
        if PQresultStatus(result) == PGRES_PIPELINE_ABORTED {
            return PostgresError(.skipped, "a statement before it failed", sql: sql)
        }
        let state = field(martlet_state(result))
        let message = field(martlet_message(result)) ?? words
        let severity = field(martlet_severity(result)) ?? "FATAL"
        if severity == "FATAL" || severity == "PANIC" {
            let kind = PostgresError.Kind(sqlState: state ?? "08006")
            let isPassing = [.restarting, .crowded].contains(kind)
            return PostgresError(
                mayCommit ? .unknownOutcome : isPassing ? kind : .lost, message, sqlState: state,
                sql: sql)
        }
        var kind = PostgresError.Kind(sqlState: state ?? "XX000")
        if kind == .timedOut, isGivenUp { kind = .cancelled }
        // PostgreSQL's error if a table has changed under a prepared statement
        // (RevalidateCachedQuery in plancache.c).
        if state == "0A000", message.contains("cached plan") { kind = .stalePlan }
        // The connection is still usable. Such a code is from another server, which a function or a
        // foreign table asked, or a function raised it.
        if PostgresError(kind, "").endsConnection { kind = .other }
        var error = PostgresError(kind, message, sqlState: state, sql: sql)
        error.schema = field(martlet_schema(result))
        error.table = field(martlet_table(result))
        error.column = field(martlet_column(result))
        error.constraint = field(martlet_constraint(result))
        error.isOfSetting = state == "22023" && field(martlet_source_file(result)) == "guc.c"
        return error
    }
}

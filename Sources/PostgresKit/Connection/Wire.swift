internal import CPostgres
internal import ConnectionKit

/// The handle of one connection, and waiting on it: for results, until a moment, or until somebody
/// no longer wants them.
final class Wire {
    /// nil once the connection is finished; the library takes that for a lost one.
    private(set) var pointer: OpaquePointer?
    let wake: Wake
    private let answer: Duration?
    /// If the connection were lost now, nobody could tell whether the work under way has happened.
    private(set) var mayCommit = false
    /// The statement under way was given up from here.
    private(set) var isGivenUp = false
    /// The answer did not come in time, or waiting failed; nothing can be said any more.
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

    /// Has notices of the server counted from now on, in place of printed.
    func takeNotices() {
        martlet_take_notices(pointer, unreplicated)
    }

    /// Commits since the last call that were not waited for.
    func takeUnreplicated() -> Int {
        defer { unreplicated.pointee = 0 }
        return Int(unreplicated.pointee)
    }

    /// Hangs up.
    func finish() {
        PQfinish(pointer)
        pointer = nil
    }

    /// What was under way cannot be brought to its end.
    func cut() {
        isCut = true
    }

    var isLost: Bool { isCut || PQstatus(pointer) == CONNECTION_BAD }

    /// Something is about to be sent.
    func begin(mayCommit: Bool) {
        self.mayCommit = mayCommit
        isGivenUp = false
        deadline = answer.map { Deadline(after: $0) }
    }

    /// How long the present wait may last, in place of the usual.
    func limit(_ duration: Duration?) {
        deadline = duration.map { Deadline(after: $0) }
    }

    /// The first line of the library's last words.
    var words: String {
        guard let words = PQerrorMessage(pointer) else { return "" }
        return String(cString: words).split(separator: "\n").first.map(String.init) ?? ""
    }

    /// Writes out what is queued, reading meanwhile: a server that cannot write stops reading.
    func flush() throws(PostgresError) {
        while true {
            let left = PQflush(pointer)
            if left == 0 { return }
            guard left == 1, !isCut else { throw lost() }
            try step(writing: true)
        }
    }

    /// Waits for the socket, and takes in what came.
    func step(writing: Bool) throws(PostgresError) {
        if try wait(writing: writing).contains(.readable), PQconsumeInput(pointer) == 0 {
            throw lost()
        }
    }

    /// The next result; nil at the end of a statement's results. The caller clears it.
    func result() throws(PostgresError) -> OpaquePointer? {
        while PQisBusy(pointer) == 1 {
            guard !isCut else { throw lost() }
            if try wait(writing: false).contains(.readable), PQconsumeInput(pointer) == 0 {
                // What the server said before it hung up is still to be read.
                break
            }
        }
        return PQgetResult(pointer)
    }

    /// Waits for the socket, once.
    /// - Throws: `PostgresError` when time is over; the connection is of no use then.
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

    /// Waits for whatever the server says unasked.
    /// - Returns: Whether there is something to read; not so when the time is over or somebody
    ///   signalled.
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

    /// Asks the server to stop what it does; its answer still comes, one way or the other.
    func giveUp() {
        isGivenUp = true
        // Soon, or the server is not there any more.
        deadline = Deadline(after: .seconds(5))
        guard let cancel = PQgetCancel(pointer) else { return }
        var words: [CChar] = Array(repeating: 0, count: 256)
        _ = PQcancel(cancel, &words, Int32(words.count))
        PQfreeCancel(cancel)
    }

    /// The connection is gone.
    func lost(sql: String? = nil) -> PostgresError {
        let words = words
        return PostgresError(
            mayCommit ? .unknownOutcome : .lost,
            words.isEmpty ? "the connection to the server was lost" : words, sql: sql)
    }

    /// What a result that is a failure says.
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
        // What PostgreSQL says when a table's shape has changed under a prepared statement
        // (RevalidateCachedQuery in plancache.c).
        if state == "0A000", message.contains("cached plan") { kind = .stalePlan }
        // The connection lives on. Such a code is that of another server, which a function or a foreign
        // table asked, or one that a function raises.
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

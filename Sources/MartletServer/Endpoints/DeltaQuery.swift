internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

/// The query of `GET /deltas`.
struct DeltaQuery: Sendable {
    /// Longest wait of a long poll, in seconds: below what proxies put up with.
    private static let longestWait: Int64 = 60

    let since: Revision
    let wait: Int64
    let clientID: String?
    let dataSet: String?
    let lineage: String?
    /// Whether rows are wanted in place of entries.
    let wantsRows: Bool
    /// Whether rows are never wanted.
    let takesEntriesOnly: Bool

    /// - Parameter isEvents: Whether the answer is a stream of events, which a browser that connects
    ///   again by itself resumes by naming the last one it had.
    init(_ request: HTTPRequest, isEvents: Bool) throws(Problem) {
        let items = try QueryItems(
            request.query,
            names: ["since", "wait", "client", "dataSet", "lineage", "rows", "entries"])
        guard var since = try items.integer("since", in: 0...Int64.max) else {
            throw Problem.malformed("The query needs “since”, the version the device has.")
        }
        var lineage = try items.name("lineage")
        if isEvents, let last = request.headers["last-event-id"].flatMap({ Int64($0) }), last >= 0 {
            if last != since { lineage = nil }
            since = last
        }
        self.since = since
        self.lineage = lineage
        wantsRows = try items.integer("rows", in: 0...1) == 1
        takesEntriesOnly = try items.integer("entries", in: 0...1) == 1
        guard !wantsRows || !takesEntriesOnly else {
            throw Problem.malformed("“rows” and “entries” exclude each other; ask for one.")
        }
        clientID = try items.name("client")
        dataSet = try items.name("dataSet")
        wait = try items.integer("wait", in: 0...Self.longestWait) ?? 0
    }

    /// What a listener who may see what `principal` may asks for.
    /// - Parameters:
    ///   - byteLimit: See `DeltaRequest`.
    ///   - mostEntryBytes: See there.
    func question(
        _ principal: Principal, byteLimit: Int = Listening.batchBytes,
        mostEntryBytes: Int = Listening.entryBytes
    ) -> DeltaRequest {
        var question = DeltaRequest(principal: principal, since: since, byteLimit: byteLimit)
        question.clientID = clientID
        question.dataSet = dataSet
        question.lineage = lineage
        question.wantsRows = wantsRows
        question.takesEntriesOnly = takesEntriesOnly
        question.mostEntryBytes = mostEntryBytes
        return question
    }
}

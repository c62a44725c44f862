internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore

/// The query of `GET /deltas`.
struct DeltaQuery: Sendable {
    /// The longest wait of a long poll, in seconds. It is shorter than the time limits of proxies.
    private static let longestWait: Int64 = 60

    let since: Revision
    let wait: Int64
    let clientID: String?
    let dataSet: String?
    let lineage: String?
    /// True if the listener wants rows in place of entries.
    let wantsRows: Bool
    /// True if the listener never wants rows.
    let takesEntriesOnly: Bool

    /// Reads the query of a request.
    ///
    /// - Parameter isEvents: True if the answer is a stream of events. A browser resumes such a
    ///   stream automatically and names the last event that it had.
    /// - Throws: `Problem` if the query is malformed.
    init(_ request: HTTPRequest, isEvents: Bool) throws(Problem) {
        let items = try QueryItems(
            request.query,
            names: ["since", "wait", "client", "dataSet", "lineage", "rows", "entries"])
        guard var since = try items.integer("since", in: 0...Int64.max) else {
            throw Problem.malformed("The query needs “since”, the version the device has.")
        }
        var lineage = try items.name("lineage", most: Limits.lineageBytes)
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

    /// Returns the request of a listener that may see the records that `principal` may see.
    ///
    /// - Parameters:
    ///   - byteLimit: See `DeltaRequest`.
    ///   - mostEntryBytes: See `DeltaRequest`.
    func deltaRequest(
        _ principal: Principal, byteLimit: Int = Listening.batchBytes,
        mostEntryBytes: Int = Listening.entryBytes
    ) -> DeltaRequest {
        var request = DeltaRequest(principal: principal, since: since, byteLimit: byteLimit)
        request.clientID = clientID
        request.dataSet = dataSet
        request.lineage = lineage
        request.wantsRows = wantsRows
        request.takesEntriesOnly = takesEntriesOnly
        request.mostEntryBytes = mostEntryBytes
        return request
    }
}

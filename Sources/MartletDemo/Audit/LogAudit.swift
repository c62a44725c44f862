import Martlet
import MartletProtocol

/// Reads the server's whole log over the wire and counts in how many entries each mark stands.
struct LogAudit: Sendable {
    /// Entries that carry a mark.
    private(set) var entries: [String: Int] = [:]
    /// The log's last revision.
    private(set) var revision: Revision = 0
    /// Places where a revision does not follow its predecessor.
    private(set) var gaps = 0

    /// - Throws: `DemoError` when the server does not answer as it should.
    init(_ transport: any Transport) async throws {
        var more = true
        while more {
            let request = try SyncCoder.encode(SyncRequest(maxRevision: revision))
            let answer = try await transport.exchange(request)
            guard answer.status == 200 else {
                throw DemoError("The server answered the check of its log with \(answer.status).")
            }
            let start = revision
            let decoded = try SyncCoder.decodeAnswer(answer.body)
            for set in decoded.changeSets { count(set) }
            guard decoded.maxRevision > start || !decoded.more else {
                throw DemoError("The server said there was more of its log and gave nothing.")
            }
            if decoded.maxRevision != revision {
                gaps += 1
                revision = decoded.maxRevision
            }
            more = decoded.more
        }
    }

    private mutating func count(_ set: ChangeSet) {
        if set.revision == revision + 1 {
            revision += 1
        } else {
            gaps += 1
            revision = set.revision ?? revision
        }
        for mark in Mark.all(in: set) { entries[mark, default: 0] += 1 }
    }
}

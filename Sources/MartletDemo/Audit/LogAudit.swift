import Martlet
import MartletModel
import MartletProtocol
import MartletStore

/// Reads the server's whole log over the wire, and counts the entries in which each mark is new.
///
/// An entry may repeat an attribute that it does not change, as entries of external writes do,
/// which have whole rows. A mark that was in the attribute before is not counted again.
struct LogAudit: Sendable {
    /// The number of entries with each mark.
    private(set) var entries: [String: Int] = [:]
    /// The log's last revision.
    private(set) var revision: Revision = 0
    /// The number of times that a revision does not follow its predecessor.
    private(set) var gaps = 0
    /// The revisions at which records were created and deleted, of the types that are asked for.
    private(set) var lives: [DemoRecord: Life] = [:]
    private let watched: Set<String>
    /// The mark that an attribute of a record holds.
    private var held: [Cell: String] = [:]

    /// The revisions between which a record existed.
    struct Life {
        var from: Revision
        var to = Revision.max
    }

    private struct Cell: Hashable {
        let type: String
        let id: RecordID
        let attribute: String
    }

    /// - Parameter watched: The types of `lives`.
    /// - Throws: `DemoError` if the server does not answer as it should.
    init(_ transport: any Transport, lives watched: Set<String> = []) async throws {
        self.watched = watched
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

    private mutating func note(_ type: TypeChanges, at revision: Revision) {
        for id in type.create {
            lives[DemoRecord(type: type.name, id: id)] = Life(from: revision)
        }
        for id in type.delete { lives[DemoRecord(type: type.name, id: id)]?.to = revision }
    }

    private mutating func count(_ set: ChangeSet) {
        if set.revision == revision + 1 {
            revision += 1
        } else {
            gaps += 1
            revision = set.revision ?? revision
        }
        var new: Set<String> = []
        for type in set.types {
            if watched.contains(type.name) { note(type, at: revision) }
            for entry in type.entries {
                for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                    let cell = Cell(type: type.name, id: entry.id, attribute: name)
                    let mark = Mark.find(SQLValue(value, kind: .any))
                    if let mark, held[cell] != mark { new.insert(mark) }
                    held[cell] = mark
                }
            }
        }
        for mark in new { entries[mark, default: 0] += 1 }
    }
}

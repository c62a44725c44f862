import MartletModel
import MartletProtocol
import PostgresKit

@testable import MartletPostgres

/// What a device has that follows the log: its entries in order, and nothing else.
struct FoldedLog {
    /// Bytes: texts that only look the same are different keys.
    struct ID: Hashable, CustomStringConvertible {
        let bytes: [UInt8]

        init(_ text: String) { bytes = Array(text.utf8) }

        var description: String { String(decoding: bytes, as: UTF8.self) }
    }

    struct Record {
        var revision: Revision
        var values: [String: Value] = [:]
    }

    private(set) var revision: Revision = 0
    private(set) var records: [String: [ID: Record]] = [:]
    /// All records that were there at some time.
    private var known: [String: Set<ID>] = [:]
    /// Entries that no device could apply.
    private(set) var faults: [String] = []

    /// Applies the entries that are new.
    mutating func follow(_ connection: PostgresConnection) throws {
        let log = try connection.query(
            "SELECT body, revision FROM _martlet.log WHERE revision > $1 ORDER BY revision",
            [.integer(revision)])
        for row in 0..<log.count {
            guard try log.integer(row, 1) == revision + 1 else {
                faults.append("revision \(try log.integer(row, 1)) follows \(revision)")
                return
            }
            revision += 1
            for changes in try SyncCoder.decodeChangeSet(log.binary(row, 0)).types {
                apply(changes)
            }
        }
    }

    mutating func takeFaults() -> [String] {
        defer { faults = [] }
        return faults
    }

    private mutating func apply(_ changes: TypeChanges) {
        let created = Set(changes.create.map { ID($0.description) })
        for entry in changes.entries {
            let id = ID(entry.id.description)
            let isNew = created.contains(id)
            if (records[changes.name]?[id] == nil) != isNew {
                let what = isNew ? "creates" : "updates"
                faults.append(
                    "revision \(revision) \(what) \(changes.name) \(id), which is \(isNew ? "there" : "not there")"
                )
            }
            var record = records[changes.name]?[id] ?? Record(revision: revision)
            record.revision = entry.revision ?? revision
            for (name, value) in zip(entry.attributes.names, entry.attributes.values) {
                record.values[name] = value == .null ? nil : value
            }
            records[changes.name, default: [:]][id] = record
            known[changes.name, default: []].insert(id)
        }
        for id in changes.delete.map({ ID($0.description) }) {
            // A trigger may delete a record that the set has just created. For all others it was never there.
            let isKnown = known[changes.name]?.contains(id) == true
            if records[changes.name]?.removeValue(forKey: id) == nil, isKnown {
                faults.append("revision \(revision) deletes \(changes.name) \(id), which is gone")
            }
        }
    }
}

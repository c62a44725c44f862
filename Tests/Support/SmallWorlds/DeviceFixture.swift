package import Foundation
internal import Martlet
package import MartletDevice
package import MartletModel
package import MartletProtocol
package import MartletStore
internal import SQLiteKit

/// A device on a real file in a folder of its own, and a way to answer it by hand.
package final class DeviceFixture {
    package static let script = SmallWorld.script

    package let folder: URL
    package let path: String
    package private(set) var store: DeviceStore
    private var bits: UInt64 = 0

    package init(script: String = DeviceFixture.script) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("martlet-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appendingPathComponent("device.sqlite").path
        store = try Self.open(path, script: script)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    private static func open(_ path: String, script: String?) throws -> DeviceStore {
        try DeviceStore(
            path: path, script: script, randomBits: { UInt64.random(in: .min ... .max) })
    }

    /// - Parameter script: The app's DDL; nil takes the tables as they are in the file.
    package func reopen(script: String? = DeviceFixture.script) throws {
        store = try Self.open(path, script: script)
    }

    @discardableResult
    package func write<Result>(_ body: (WriteContext) throws -> Result) throws -> Result {
        try store.write(now: 1_000, body)
    }

    /// What the device would send now.
    package func gather() throws -> SyncRequest {
        let gathered = try store.gather(
            owner: "test", lease: 1_000, byteLimit: 1 << 20, includesChanges: true, now: 1_000)
        guard case .request(let bytes, _) = gathered else { throw FixtureError.leased }
        return try SyncCoder.decodeRequest(bytes)
    }

    @discardableResult
    package func apply(_ sets: [ChangeSet], reaching revision: Revision) throws -> RebaseReport {
        let report = try store.apply(
            sets[...], reaching: revision, lineage: "l\(revision)", dataSet: "d", owner: "test",
            now: 2_000)
        guard let report else { throw FixtureError.leased }
        return report
    }

    package func rows(_ sql: String) throws -> [[SQLValue]] {
        try store.local.rows(sql).map(\.values)
    }

    /// Another process on the file: foreign keys off, no recursive triggers.
    package func shell(_ sql: String) throws {
        try Self.shell(sql, path: path)
    }

    package static func shell(_ sql: String, path: String) throws {
        let connection = try Connection(path: path, mode: .readWrite)
        try connection.execute(sql)
    }
}

package enum FixtureError: Error {
    case leased
    case changed
}

extension ChangeSet {
    /// An entry of the log, made by someone else unless told otherwise.
    package static func entry(_ revision: Revision, own: String? = nil, _ types: TypeChanges...)
        -> ChangeSet
    {
        var set = ChangeSet(types: types)
        set.revision = revision
        set.identifier = own
        set.conflict = own == nil ? nil : false
        return set
    }

    package static func refusal(_ identifier: String, _ reason: RefusalReason) -> ChangeSet {
        var set = ChangeSet()
        set.identifier = identifier
        set.conflict = true
        set.reason = reason
        set.message = "refused"
        return set
    }
}

extension TypeChanges {
    package static func created(
        _ name: String, _ id: Int64, old: Int64? = nil, at revision: Revision,
        _ attributes: Attributes
    ) -> TypeChanges {
        TypeChanges(
            name: name, create: [.integer(id)],
            entries: [
                RecordEntry(
                    id: .integer(id), revision: revision, oldID: old.map { .integer($0) },
                    attributes: attributes)
            ])
    }

    package static func updated(
        _ name: String, _ id: Int64, at revision: Revision, _ attributes: Attributes
    ) -> TypeChanges {
        TypeChanges(
            name: name, update: [.integer(id)],
            entries: [
                RecordEntry(
                    id: .integer(id), revision: revision, attributes: attributes)
            ])
    }
}

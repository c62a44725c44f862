import Dispatch
import Foundation
import MartletModel
import MartletProtocol
import MartletRedis
import MartletServerCore
import Synchronization
import SystemKit

@testable import MartletServer

/// A data set as a server runs it, whose comparisons take until a test says so.
enum HeldService {
    private static let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    /// Comparisons that take until the test says so.
    final class Gate: Sendable {
        private let opened = DispatchSemaphore(value: 0)
        private let started = Mutex(0)

        /// Comparisons that were begun.
        var count: Int { started.withLock { $0 } }

        func pass() {
            started.withLock { $0 += 1 }
            opened.wait()
            opened.signal()
        }

        func open() { opened.signal() }
    }

    private final class HeldCheck: CheckSource {
        private let check: any CheckSource
        private let gate: Gate

        init(_ check: any CheckSource, _ gate: Gate) {
            (self.check, self.gate) = (check, gate)
        }

        func compare(_ request: CheckRequest) throws(StorageFault) -> CheckAnswer {
            gate.pass()
            return try check.compare(request)
        }
    }

    private struct HeldReaders: DataSetReaders {
        let readers: any DataSetReaders
        let gate: Gate

        var isRemote: Bool { readers.isRemote }
        func log() -> any LogSource { readers.log() }
        func check() -> any CheckSource { HeldCheck(readers.check(), gate) }
        func snapshotFile(
            in folder: String, of view: ViewMoment?, while isWanted: @escaping () -> Bool
        ) throws -> SnapshotFile {
            try readers.snapshotFile(in: folder, of: view, while: isWanted)
        }
        func watch() -> any StorageWatch { readers.watch() }
        func quiet() -> FileQuiet? { readers.quiet() }
        func externalReader() throws -> (any ExternalReader)? { try readers.externalReader() }
        func outlet(of feed: DataSetFeed, name: String) async throws -> Confined<CommitOutlet>? {
            try await readers.outlet(of: feed, name: name)
        }
    }

    private struct HeldBacking: DataSetBacking {
        let backing: any DataSetBacking
        let gate: Gate

        func open(now: Int64, unsendable: UnsendableRows) throws -> OpenedDataSet {
            let opened = try backing.open(now: now, unsendable: unsendable)
            return OpenedDataSet(
                storage: opened.storage, log: opened.log, ddl: opened.ddl, tables: opened.tables,
                readers: HeldReaders(readers: opened.readers, gate: gate))
        }
    }

    static func make(
        _ folder: TemporaryFolder, _ gate: Gate, cacheBytes: Int = 1 << 20
    ) async throws -> DataSetService {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        return try await DataSetService(
            .init(
                backing: HeldBacking(
                    backing: EmbeddedBacking(path: folder.path + "/held.sqlite", script: script),
                    gate: gate),
                rules: { _ in DataSetRules() }, dependencyWaitSeconds: 1, keepRevisions: nil,
                cacheBytes: cacheBytes, now: { 1 },
                snapshots: .init(
                    folder: folder.path + "/snapshots", plan: .whole, every: 1_000,
                    views: ViewSnapshotLimits(),
                    queue: DispatchQueue(label: "snapshots"), later: { _, _ in }),
                pulse: Pulse(), redis: nil),
            DataSetReports(
                dataSet: "team", metrics: Metrics(), serverLog: ServerLog { _ in }, changed: {}))
    }
}

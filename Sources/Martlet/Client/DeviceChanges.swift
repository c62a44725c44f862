internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Tells observers what the device's two writing connections commit, and what others do.
///
/// Lives on the device's queue.
final class DeviceChanges {
    private let hub: ChangeHub
    private let generation: SchemaGeneration
    private let collector = ChangeCollector(ignoredPrefix: ReservedWords.prefix)
    private var store: DeviceStore
    /// The local connection's view: it changes with every commit that is not its own.
    private var dataVersion: Int64 = 0
    private var hasForeignWrites = false

    init(store: DeviceStore, hub: ChangeHub, generation: SchemaGeneration) {
        self.store = store
        self.generation = generation
        self.hub = hub
        attach()
    }

    /// Begins to report what the store's connections change; again after they were opened anew.
    func attach() {
        store.local.connection.report(to: collector)
        store.applying.connection.report(to: collector)
        collector.clear()
        dataVersion = currentVersion()
        store.beforeApplyingCommits = { [weak self] in self?.lookBeforeCommit() }
    }

    private func currentVersion() -> Int64 {
        (try? store.local.connection.dataVersion()) ?? 0
    }

    /// Notes other processes' commits up to now; the applying connection's own has not happened.
    private func lookBeforeCommit() {
        if currentVersion() != dataVersion { hasForeignWrites = true }
    }

    /// Tells of what a save has committed.
    func saved() {
        publish(causes: .local)
    }

    /// Takes note that the applying connection may have committed.
    func committed() {
        dataVersion = currentVersion()
    }

    /// Tells of what the applying connection has committed.
    func applied(causes: DatabaseChange.Causes) {
        committed()
        publish(causes: causes)
    }

    /// Forgets what a failed transaction had changed.
    func rolledBack() {
        collector.clear()
        dataVersion = currentVersion()
    }

    /// Looks whether another process has written.
    func lookForForeignWrites() {
        let version = currentVersion()
        guard version != dataVersion || hasForeignWrites else { return }
        dataVersion = version
        hasForeignWrites = false
        generation.advance()
        hub.publish(DatabaseChange(causes: .elsewhere, tables: [:], isUnbounded: true))
    }

    private func publish(causes: DatabaseChange.Causes) {
        defer { if hasForeignWrites { lookForForeignWrites() } }
        guard !collector.isEmpty else { return }
        let taken = collector.take()
        guard hub.isWanted else { return }
        hub.publish(
            DatabaseChange(
                causes: causes, tables: ChangedRecords.byTable(taken, session: store.session)))
    }
}

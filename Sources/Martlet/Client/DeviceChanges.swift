internal import MartletDevice
internal import MartletModel
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Tells observers about the commits of the device's two writing connections, and about external
/// writes.
///
/// It is confined to the device's queue.
final class DeviceChanges {
    private let hub: ChangeHub
    private let generation: SchemaGeneration
    private let collector = ChangeCollector(ignoredPrefix: ReservedWords.prefix)
    private let store: DeviceStore
    private var versions = ExternalCommits()
    /// The keys of the save that is about to be committed, by type.
    private var savedKeys: [String: ChangedRecords] = [:]
    /// The collector's position when the applying connection's transaction began.
    private var mark = 0
    /// Synchronised tables without rowids; SQLite's update hook does not report their changes.
    private var silentTypes: Set<String> = []
    /// Other tables without rowids that triggers write.
    private var silentTables: [String] = []

    init(store: DeviceStore, hub: ChangeHub, generation: SchemaGeneration) {
        self.store = store
        self.generation = generation
        self.hub = hub
        attach()
    }

    /// Continues after the connections were reopened. The external writes meanwhile are unknown, so
    /// everything may have changed.
    func reattach() {
        attach()
        hub.publish(DatabaseChange(causes: .local, tables: [:], isUnbounded: true))
    }

    /// Begins to report what the store's connections change.
    private func attach() {
        store.local.connection.report(to: collector)
        store.applying.connection.report(to: collector)
        collector.clear()
        savedKeys.removeAll()
        store.observer = self
        versions.begin(store)
        findSilentTables()
    }

    private func findSilentTables() {
        let found = try? store.local.rows(
            """
            SELECT name, EXISTS (
                SELECT 1 FROM sqlite_master AS m WHERE m.type = 'trigger'
                    AND m.name NOT LIKE 'martlet%' AND instr(lower(m.sql), lower(t.name)) > 0)
            FROM pragma_table_list AS t WHERE t.schema = 'main' AND t.wr
                AND t.name NOT LIKE 'martlet%'
            """)
        silentTypes.removeAll()
        silentTables.removeAll()
        for row in found ?? [] {
            guard case .text(let name)? = row.values.first else { continue }
            if store.local.schema.index(of: name) != nil {
                silentTypes.insert(name)
            } else if row.values.last == .integer(1) {
                silentTables.append(name)
            }
        }
    }

    /// Prepares for a transaction. The collector lists rows only if someone observes.
    func begin() {
        collector.listsRows = hub.isWanted
    }

    /// Reports the changes that a save has committed.
    func saved() {
        versions.saved(store)
        hub.drafts.commit()
        publish(causes: .local)
    }

    /// Reports the changes that a decision about a refused set has committed.
    func decided() {
        publish(causes: .local)
    }

    /// Reports the changes that an answer has made.
    func applied(_ report: RebaseReport) {
        var silent = silentTypes
        // A record whose id was assigned may be referenced in any table.
        if report.assignedIDs == 0 { silent.formIntersection(report.changedTypes) }
        var gone: [String: Set<RecordID>] = [:]
        for (name, keys) in report.removed {
            guard let type = store.local.schema.index(of: name) else { continue }
            // A deleted record may have been created again.
            gone[name] = keys.filter { key in
                (try? store.local.tables[type].exists(key)) == false
            }
        }
        publish(causes: Self.causes(of: report), silent: silent, gone: gone)
    }

    private static func causes(of report: RebaseReport) -> DatabaseChange.Causes {
        var causes: DatabaseChange.Causes = []
        if report.remoteRecords > 0 { causes.insert(.remote) }
        if report.assignedIDs > 0 { causes.insert(.idsAssigned) }
        for receipt in report.receipts {
            causes.insert(receipt.outcome == .refused ? .refused : .confirmed)
        }
        return causes.isEmpty ? .remote : causes
    }

    /// Forgets the changes of a failed save.
    func rolledBack() {
        collector.clear()
        savedKeys.removeAll()
        hub.drafts.rollBack()
    }

    /// Checks whether another process has written.
    /// - Returns: Whether another process has committed something.
    @discardableResult
    func lookForExternalWrites() -> Bool {
        versions.look(store)
        return publishExternalWrites()
    }

    @discardableResult
    private func publishExternalWrites() -> Bool {
        guard versions.takeFound() else { return false }
        generation.advance()
        if !hub.drafts.isEmpty {
            let context = context(on: store.local)
            defer { context.end() }
            hub.drafts.catchUp(context, causes: .elsewhere)
        }
        hub.publish(DatabaseChange(causes: .elsewhere, tables: [:], isUnbounded: true))
        return true
    }

    /// Returns the context through which drafts read. It has a session of its own, because another
    /// program may have changed the schema.
    private func context(on store: LocalStore) -> ReadContext {
        ReadContext(session: Session(store: store, generation: generation))
    }

    private func publish(
        causes: DatabaseChange.Causes, silent: Set<String> = [],
        gone: [String: Set<RecordID>] = [:]
    ) {
        defer {
            savedKeys.removeAll()
            publishExternalWrites()
        }
        let isSilent = silent.isEmpty && !savedKeys.keys.contains { silentTypes.contains($0) }
        guard !collector.isEmpty || !isSilent else { return }
        let taken = collector.take()
        guard hub.isWanted else { return }
        var tables = ChangedRecords.byTable(taken, gone: gone, session: store.session)
        for name in silent { tables[name] = .any }
        for name in silentTables { tables[name] = .any }
        for (name, keys) in savedKeys {
            var changed = tables[name] ?? .any
            changed.setKeys(of: keys)
            tables[name] = changed
        }
        hub.publish(DatabaseChange(causes: causes, tables: tables))
    }
}

extension DeviceChanges: TransactionObserver {
    func saveWillCommit(_ changes: [RecordChange], in context: WriteContext) {
        hub.drafts.review(context, causes: .local)
        savedKeys.removeAll()
        guard hub.isWanted, changes.count <= ChangedRecords.capacity else { return }
        for change in changes {
            let name = store.local.schema.types[change.type].name
            savedKeys[name, default: ChangedRecords()].note(change.id, change.operation)
        }
    }

    func applyingHasBegun() {
        mark = collector.mark()
    }

    func applyingWillCommit(_ report: RebaseReport?) {
        guard !hub.drafts.isEmpty else { return }
        let context = context(on: store.applying)
        defer { context.end() }
        hub.drafts.review(context, causes: report.map(Self.causes(of:)) ?? .local)
    }

    func applyingHasEnded(isCommitted: Bool) {
        if isCommitted {
            hub.drafts.commit()
            collector.release()
            versions.applied(store)
        } else {
            hub.drafts.rollBack()
            collector.rollBack(to: mark)
        }
    }

    func rulesHaveChanged() {
        hub.publish(DatabaseChange(causes: .remote, tables: [:], isUnbounded: true))
    }
}

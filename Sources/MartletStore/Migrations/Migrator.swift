package import SQLiteKit
internal import SQLiteRecords

/// Runs the versions that a file has not seen, each in its own transaction.
package struct Migrator {
    package let migrations: Migrations
    /// The time in milliseconds since 1970, for the ledger; nil uses the clock of the file's VFS.
    package let now: Int64?
    let progress: @Sendable (MigrationProgress) -> Void

    package init(
        _ migrations: Migrations, now: Int64? = nil,
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) {
        self.migrations = migrations
        self.now = now
        self.progress = progress
    }

    /// Returns the versions that the file has not seen. Changes nothing.
    /// - Throws: `StoreError`: `.newer` if the file is at a later version than the newest one here,
    ///   `.schema` if the list has a new version below one that the file has seen.
    package func pending(on connection: Connection) throws -> [Migration] {
        let seen: Set<Int>
        do {
            seen = try MigrationLedger(connection: connection).versions()
        } catch {
            throw StoreError(error)
        }
        let reached = seen.max() ?? 0
        guard reached <= migrations.newest else {
            throw StoreError(
                .newer,
                "The file is at version \(reached); this app knows versions up to"
                    + " \(migrations.newest). Update the app; the file was left as it is.")
        }
        let pending = migrations.list.filter { !seen.contains($0.version) }
        if let late = pending.first, late.version < reached {
            throw StoreError(
                .schema,
                "Version \(late.version) (\(late.name)) was never run on this file, which is at"
                    + " version \(reached) already. Give it a number above \(reached).")
        }
        return pending
    }

    /// Runs all versions that the file has not seen.
    ///
    /// Meanwhile the connection does not enforce foreign keys; they are checked after each sequence
    /// of data statements. The setting is restored at the end.
    /// - Parameters:
    ///   - connection: The connection, without an open transaction.
    ///   - host: The host of a synchronised file; nil for a file of the app's own.
    ///   - vfs: The VFS with which the connection was opened, for the copy next to the file.
    /// - Returns: The outcome. If it is `readOnly` or `restored`, the caller opens the file for
    ///   reading only.
    /// - Throws: `StoreError`; the file is at the last version that could be run.
    package func run(
        on connection: Connection, host: (any MigrationHost)? = nil,
        fallback: MigrationFallback = .fail, vfs: String? = nil
    ) throws -> MigrationOutcome {
        let pending = try pending(on: connection)
        let copy = MigrationCopy(of: connection, vfs: vfs)
        guard !pending.isEmpty else {
            try copy.remove()
            return .upToDate
        }
        let from = try reached(on: connection)
        let isNew = try from == 0 && isEmpty(connection)
        let fallback = isNew ? .fail : fallback
        do {
            if fallback == .restoreCopy { try copy.make() }
            try run(pending, on: connection, host: host)
            try copy.remove()
            return .migrated(from: from, to: migrations.newest)
        } catch {
            let failure = error as? StoreError ?? StoreError(.inconsistent, "\(error)")
            return try fall(
                back: fallback, failure: failure, from: from, connection: connection, copy: copy)
        }
    }

    private func reached(on connection: Connection) throws -> Int {
        do {
            return try MigrationLedger(connection: connection).versions().max() ?? 0
        } catch {
            throw StoreError(error)
        }
    }

    private func isEmpty(_ connection: Connection) throws -> Bool {
        do {
            return try connection.integer("SELECT 1 FROM main.sqlite_schema LIMIT 1") == nil
        } catch {
            throw StoreError(error)
        }
    }

    private func fall(
        back fallback: MigrationFallback, failure: StoreError, from: Int, connection: Connection,
        copy: MigrationCopy
    ) throws -> MigrationOutcome {
        guard failure.kind != .busy else { throw failure }
        switch fallback {
        case .fail: throw failure
        case .readOnly: return .readOnly(at: try reached(on: connection), failure: failure)
        case .restoreCopy:
            let reached = try reached(on: connection)
            if reached != from, try !copy.putBack() {
                return .readOnly(at: reached, failure: failure)
            }
            try copy.remove()
            return .restored(to: from, failure: failure)
        case .refetch:
            guard failure.kind != .diskFull, failure.kind != .inputOutput else { throw failure }
            return .refetching(failure: failure)
        }
    }
}

// MARK: - Running

extension Migrator {
    private func run(
        _ pending: [Migration], on connection: Connection, host: (any MigrationHost)?
    ) throws {
        let enforced = try enforcement(on: connection)
        if enforced { try set("foreign_keys = OFF", on: connection) }
        defer {
            // If the setting cannot be restored, the next statement fails too.
            if enforced { try? connection.execute("PRAGMA foreign_keys = ON") }
        }
        for (index, migration) in pending.enumerated() {
            tell(migration, done: index, of: pending.count)
            do {
                try run(migration, on: connection, host: host)
            } catch {
                throw MigrationFailure.of(error, in: migration)
            }
            tell(migration, done: index + 1, of: pending.count)
        }
    }

    private func tell(_ migration: Migration, done: Int, of total: Int) {
        progress(
            MigrationProgress(
                version: migration.version, name: migration.name, done: done, total: total))
    }

    /// Runs one version, in its transaction.
    /// - Throws: The error of the version's body, and SQLite's errors; the version is rolled back
    ///   then.
    package func run(
        _ migration: Migration, on connection: Connection, host: (any MigrationHost)?
    ) throws {
        connection.clearStatementCache()
        try connection.transaction {
            // Another process may have run the version meanwhile.
            let ledger = MigrationLedger(connection: connection)
            guard try !ledger.versions().contains(migration.version) else { return }
            try host?.begin()
            let context = MigrationContext(connection: connection, host: host)
            defer { context.end() }
            try migration.body(context)
            try context.finish()
            try host?.end()
            connection.clearStatementCache()
            try ledger.record(migration, now: now)
        }
    }

    private func enforcement(on connection: Connection) throws -> Bool {
        do {
            return try connection.integer("PRAGMA foreign_keys") == 1
        } catch {
            throw StoreError(error)
        }
    }

    private func set(_ pragma: String, on connection: Connection) throws {
        do {
            try connection.execute("PRAGMA \(pragma)")
        } catch {
            throw StoreError(error)
        }
    }
}

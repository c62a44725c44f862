internal import SQLiteKit
internal import Synchronization
internal import SystemKit

/// A SQLite database of the app's own, which is not synchronised. It has one writer and several
/// readers, each on its own queue, so that it never blocks the threads that run tasks.
///
/// An app may have several. For shared data, open a client, which is used in the same way
/// (`DatabaseAccess`).
///
/// ```swift
/// let pool = try await DatabasePool.open(path: "notes.sqlite")
/// try await pool.write { try players.insert(player, in: $0) }
/// let all = try await pool.read { try players.all(in: $0) }
/// ```
public final class DatabasePool: DatabaseAccess {
    /// The file's path.
    public let path: String
    public let _changes: ChangeHub
    /// The outcome of the migration; nil if the file was opened without migrations. If it has a
    /// failure, the file can only be read.
    public let migration: MigrationOutcome?
    /// The writer; nil once the pool was closed.
    private let writer: Confined<DatabaseWriter?>
    private let readers: ReaderPool
    private let watch: ExternalWritesWatch

    private init(path: String, parts: Parts, options: DatabaseOptions) {
        self.path = path
        _changes = parts.hub
        migration = parts.migration
        let writer = parts.writer
        self.writer = writer
        readers = parts.readers
        watch = ExternalWritesWatch(period: options.externalWritesPeriod, sleep: options.sleep) {
            [weak writer] in writer?.post { $0?.lookForExternalWrites() }
        }
        let watch = watch
        _changes.onDemand { watch.setWanted($0) }
    }

    deinit {
        watch.setWanted(false)
        _changes.finish()
    }

    /// Opens or creates a file.
    /// - Throws: `StoreError` if the file cannot be used.
    public static func open(
        path: String, options: DatabaseOptions = DatabaseOptions()
    ) async throws -> DatabasePool {
        try await open(path: path, migrator: nil, fallback: .fail, options: options)
    }

    /// Opens or creates a file, and runs the versions that it has not seen.
    /// - Parameters:
    ///   - path: The SQLite file.
    ///   - migrations: All versions of the app's tables.
    ///   - fallback: The action if a version cannot be run; see `migration`. A pool has no server
    ///     to refetch data from, so `refetch` acts as `readOnly`.
    ///   - options: The options of the database.
    ///   - progress: Called before and after each version, on the queue that opens the file.
    /// - Throws: `StoreError`: `.newer` if a newer version of the app wrote the file, and the
    ///   failure of a version or of the file.
    public static func open(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        options: DatabaseOptions = DatabaseOptions(),
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws -> DatabasePool {
        try await open(
            path: path, migrator: Migrator(migrations, progress: progress),
            fallback: fallback == .refetch ? .readOnly : fallback, options: options)
    }

    private static func open(
        path: String, migrator: Migrator?, fallback: MigrationFallback, options: DatabaseOptions
    ) async throws -> DatabasePool {
        guard !path.isEmpty, path != ":memory:", !path.utf8.contains(0) else {
            throw StoreError(
                .file,
                "A database needs a file, because its connections share it; give a path, of a"
                    + " temporary file if nothing is to be kept.")
        }
        // Opening blocks, and may recover a log, so it runs on a queue too.
        let parts = try await Confined(label: "martlet.open", ()).run { _ in
            do {
                return try Parts(
                    path: path, migrator: migrator, fallback: fallback, options: options)
            } catch {
                throw StoreError.of(error)
            }
        }
        return DatabasePool(path: path, parts: parts, options: options)
    }

    /// Runs `body` on the data of one moment. A read never waits for a write.
    /// - Throws: The error of `body`; `StoreError` if the pool was closed, the task is cancelled,
    ///   or the file fails.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await making { try await self.readers.read(body) }
    }

    /// Reads, and also returns which part of the database was read.
    /// - Throws: The errors of `read`.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await making { try await self.readers.observedRead(willRead: willRead, body) }
    }

    /// Runs `body` as one save. If `body` throws, nothing is written.
    /// - Throws: The error of `body`; `StoreError` if the pool was closed, the task is cancelled,
    ///   or the database refuses.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await writer.runUnlessCancelled { writer, sign in
            try Self.open(writer).write(sign, body)
        }
    }

    /// Runs `work`. If it needs a table that does not exist yet, creates the table and runs it
    /// again.
    private func making<Result: Sendable>(
        _ work: () async throws -> Result
    ) async throws -> Result {
        var made = 0
        while true {
            do {
                return try await work()
            } catch let missing as MissingTable where made < MissingTable.limit {
                made += 1
                try await writer.run { try Self.open($0).make(missing) }
            }
        }
    }

    private static func open(_ writer: DatabaseWriter?) throws -> DatabaseWriter {
        guard let writer else {
            throw StoreError(.misuse, "The database was closed; open it again.")
        }
        return writer
    }

    /// Ends observations, and closes the file's connections after their current work. Later calls
    /// throw `StoreError` `.misuse`; closing again does nothing.
    public func close() async {
        watch.setWanted(false)
        _changes.finish()
        await readers.close()
        try? await writer.run { $0 = nil }
    }

    /// The parts of a pool.
    private struct Parts: Sendable {
        let hub = ChangeHub()
        let writer: Confined<DatabaseWriter?>
        let readers: ReaderPool
        let migration: MigrationOutcome?

        init(
            path: String, migrator: Migrator?, fallback: MigrationFallback,
            options: DatabaseOptions
        ) throws {
            let milliseconds = Int32(
                clamping: Int((options.busyTimeout / .milliseconds(1)).rounded()))
            let connection = try Connection(
                path: path, vfs: options.vfs, busyTimeoutMilliseconds: milliseconds,
                cachedStatements: options.cachedStatements, tracksTables: true)
            // The file of a newer app version must not be changed, not even its journal mode.
            _ = try migrator?.pending(on: connection)
            // SQLite lets triggers maintain a full-text index only if the schema is trusted. And a
            // row that REPLACE deletes must fire its trigger.
            try connection.execute(
                """
                PRAGMA journal_mode = WAL;
                PRAGMA synchronous = \(options.isDurable ? "FULL" : "NORMAL");
                PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;
                PRAGMA trusted_schema = ON;
                """)
            migration = try migrator?.run(on: connection, fallback: fallback, vfs: options.vfs)
            if migration?.failure != nil { try connection.execute("PRAGMA query_only = ON") }
            let generation = SchemaGeneration()
            let session = Session(
                connection: connection, hooks: options.hooks, generation: generation)
            options.trace?.attach(to: session)
            let made = try DatabaseWriter(
                session: session, generation: generation, hub: hub,
                randomBits: options.randomBits)
            writer = Confined(label: "martlet.writer", made)
            readers = try ReaderPool(count: options.readers) {
                let connection = try Connection(
                    path: path, mode: .readOnly, vfs: options.vfs,
                    busyTimeoutMilliseconds: milliseconds,
                    cachedStatements: options.cachedStatements, tracksTables: true)
                let session = Session(connection: connection, generation: generation)
                options.trace?.attach(to: session)
                return session
            }
        }
    }
}

/// Reads and writes for programs without tasks, such as command-line tools. They block the thread.
///
/// Within a closure that reads or writes, they throw `StoreError` `.misuse`, because two calls that
/// wait for each other would wait for ever.
extension DatabasePool {
    /// Runs `body` on the data of one moment, and blocks the thread until it has ended. `body` runs
    /// again from its beginning if a table had to be created.
    /// - Throws: The error of `body`; `StoreError`.
    @available(*, noasync, message: "it blocks; await “read” instead")
    public func readBlocking<Result>(
        _ body: (ReadContext) throws -> Result
    ) throws -> Result {
        var made = 0
        while true {
            do {
                return try readers.readBlocking(body)
            } catch let missing as MissingTable where made < MissingTable.limit {
                made += 1
                try writer.runBlocking { try Self.open($0).make(missing) }
            }
        }
    }

    /// Runs `body` as one save, and blocks the thread until it is committed. `body` runs again from
    /// its beginning if a table had to be created.
    /// - Throws: The error of `body`, and `StoreError`; nothing was written then.
    @available(*, noasync, message: "it blocks; await “write” instead")
    @discardableResult
    public func writeBlocking<Result>(
        _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try writer.runBlocking { try Self.open($0).write(CancellationFlag(), body) }
    }
}

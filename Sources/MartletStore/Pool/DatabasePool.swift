internal import SQLiteKit
internal import Synchronization
internal import SystemKit

/// A SQLite database of the app's own, not kept in step: one writer, several readers, each on a
/// queue of its own, so that nothing ever blocks the threads tasks run on.
///
/// An app may have several. For data that is shared with others open a client, which is used in the
/// same way (`DatabaseAccess`).
public final class DatabasePool: DatabaseAccess {
    /// The file's path.
    public let path: String
    public let _changes: ChangeHub
    /// How opening by versions ended; nil where the file was opened without. Where it has a
    /// failure, the file can only be read.
    public let migration: MigrationOutcome?
    /// Nil once it was closed.
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
    /// - Throws: `StoreError` where the file cannot be used.
    public static func open(
        path: String, options: DatabaseOptions = DatabaseOptions()
    ) async throws -> DatabasePool {
        try await open(path: path, migrator: nil, fallback: .fail, options: options)
    }

    /// Opens or creates a file, and leads it through the versions it has not seen.
    /// - Parameters:
    ///   - path: The SQLite file.
    ///   - migrations: All versions of the app's tables.
    ///   - fallback: What to do when a version cannot be run; see `migration`. There is nothing to
    ///     fetch anew here: `fetchAnew` is the same as `readOnly`.
    ///   - options: How it is opened.
    ///   - progress: Told before and after each version, on the queue that opens the file.
    /// - Throws: `StoreError`: `.newer` for the file of a newer app, what a version fails of, what
    ///   the file fails of.
    public static func open(
        path: String, migrations: Migrations, fallback: MigrationFallback = .fail,
        options: DatabaseOptions = DatabaseOptions(),
        progress: @escaping @Sendable (MigrationProgress) -> Void = { _ in }
    ) async throws -> DatabasePool {
        try await open(
            path: path, migrator: Migrator(migrations, progress: progress),
            fallback: fallback == .fetchAnew ? .readOnly : fallback, options: options)
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
        // Opening blocks, and may recover a log: so it happens on a queue as well.
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

    /// Runs `body` on one moment's data. Reading never waits for writing.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await making { try await self.readers.read(body) }
    }

    /// Reads, and tells what part of the database was read.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await making { try await self.readers.observedRead(willRead: willRead, body) }
    }

    /// Runs `body` as one save: all of it happens, or, where it throws, nothing.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await writer.runUnlessCancelled { writer, sign in
            try Self.open(writer).write(sign, body)
        }
    }

    /// Runs work again after making a table it met for the first time.
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

    /// Ends observations, and closes the file's connections, each after the work it was given. What
    /// is asked later is refused with `StoreError` `.misuse`; closing again does nothing.
    public func close() async {
        watch.setWanted(false)
        _changes.finish()
        await readers.close()
        try? await writer.run { $0 = nil }
    }

    /// What a pool is made of.
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
            // A newer app's file is not even switched to another journal.
            _ = try migrator?.pending(on: connection)
            // The schema is trusted here because SQLite lets triggers keep a full-text index only
            // then; and a row that REPLACE deletes must fire its trigger.
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

/// For programs without tasks, such as command-line tools: the same work, waited for by the thread.
///
/// Within a closure that reads or writes they are refused (`StoreError` `.misuse`), since two that
/// wait for each other would wait for ever.
extension DatabasePool {
    /// Runs `body` on one moment's data, and blocks the thread until it has ended.
    /// - Throws: What `body` throws; `StoreError`.
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

    /// Runs `body` as one save, and blocks the thread until it is on the disk.
    /// - Throws: What `body` throws, and then nothing was written; `StoreError`.
    @available(*, noasync, message: "it blocks; await “write” instead")
    @discardableResult
    public func writeBlocking<Result>(
        _ body: (WriteContext) throws -> Result
    ) throws -> Result {
        try writer.runBlocking { try Self.open($0).write(CancellationFlag(), body) }
    }
}

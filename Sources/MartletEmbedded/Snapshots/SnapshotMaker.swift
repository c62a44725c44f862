package import MartletModel
internal import MartletProtocol
package import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Makes the files of a snapshot of a data set, on a connection of its own, next to the one writer.
///
/// It is confined to the queue of its holder, and blocks while it works. Its memory does not grow
/// with the data set.
///
/// ```swift
/// let maker = SnapshotMaker(store: store)
/// let cut = try maker.make(
///     for: VisibilityFilter.everything.permissionClasses[0], at: { "\(folder)/\($0).sqlite" })
/// ```
package final class SnapshotMaker {
    /// A finished part.
    package struct Part: Sendable {
        package let name: String
        /// The path of the finished SQLite file, which is not yet synchronised to the disk.
        package let path: String
        /// The number of its records of each type, without types that have none.
        package let records: [(type: String, count: Int64)]
    }

    /// All parts of a snapshot, of one moment.
    package struct Cut: Sendable {
        package let dataSet: String
        package let revision: Revision
        package let lineage: String
        /// The schema's fingerprint.
        package let schema: String
        package let parts: [Part]
    }

    private let source: String
    private let vfs: String?
    private let plan: SeedingPlan
    private let filter: VisibilityFilter
    private let unsendable: UnsendableRows
    private let moment: ConsistentRead

    /// Makes a maker for a data set.
    ///
    /// - Parameter store: The data set's storage. The maker takes only its path from it.
    package convenience init(
        store: EmbeddedStore, plan: SeedingPlan = .whole, filter: VisibilityFilter = .everything
    ) {
        self.init(
            path: store.path, vfs: store.vfs, plan: plan, filter: filter,
            unsendable: store.unsendable)
    }

    /// Makes a maker for a file.
    ///
    /// - Parameters:
    ///   - path: The file of a data set that a server keeps or kept.
    ///   - unsendable: Notes rows that are left out.
    package convenience init(
        path: String, vfs: String? = nil, plan: SeedingPlan = .whole,
        filter: VisibilityFilter = .everything, unsendable: UnsendableRows = UnsendableRows()
    ) {
        self.init(
            path: path, vfs: vfs, plan: plan, filter: filter, unsendable: unsendable,
            consistently: nil)
    }

    /// Makes a maker for a file that a server may have open.
    ///
    /// - Parameter consistently: Makes the data set's writer take the external writes in. Without
    ///   it, a file in which some of them wait is refused.
    package init(
        path: String, vfs: String? = nil, plan: SeedingPlan = .whole,
        filter: VisibilityFilter = .everything, unsendable: UnsendableRows = UnsendableRows(),
        consistently: ConsistentReading?
    ) {
        moment = ConsistentRead(consistently: consistently, mayBeOld: true)
        self.unsendable = unsendable
        source = path
        self.vfs = vfs
        self.plan = plan
        self.filter = filter
    }

    /// Makes the files of a snapshot, all of one revision, and checks each as a device would.
    ///
    /// - Parameters:
    ///   - isWanted: Called repeatedly while statements run. When it returns false, this ends with
    ///     an error.
    ///   - pathOf: Returns the path for the file of a part, by the part's name. A file there is
    ///     replaced.
    /// - Throws: `StorageFault`, `SchemaError`. Unfinished files are then removed if possible.
    package func make(
        for permissions: PermissionClass, while isWanted: @escaping () -> Bool = { true },
        at pathOf: (_ part: String) -> String
    ) throws -> Cut {
        var paths: [String] = []
        do {
            let connection = try open()
            connection.stopStatements { !isWanted() }
            let schema = try SchemaReader.read(connection)
            let names = plan.parts(of: schema)
            paths = names.map(pathOf)
            for path in paths { try begin(path, like: connection) }
            for (index, path) in paths.enumerated() { try attach(path, index, to: connection) }
            let begun = try fill(names, schema, permissions, on: connection)
            for index in paths.indices { try connection.execute("DETACH \(Self.name(index))") }
            let descriptions = try zip(begun, paths).map { try finish($0, at: $1, isWanted) }
            for path in paths {
                let reader = try SnapshotReader(path: path, vfs: vfs)
                reader.connection.stopStatements { !isWanted() }
                try reader.verify()
            }
            guard let first = descriptions.first else {
                throw StorageFault(.failed, "a snapshot without parts")
            }
            return Cut(
                dataSet: first.dataSet, revision: first.revision, lineage: first.lineage,
                schema: first.schema,
                parts: zip(descriptions, paths).map { description, path in
                    Part(
                        name: description.part, path: path,
                        records: description.types.filter { $0.records > 0 }.map {
                            ($0.name, $0.records)
                        })
                })
        } catch {
            for path in paths { try? DatabaseFile.remove(path, vfs: vfs) }
            switch error {
            case let error as SQLiteError: throw StorageFault(error)
            case let error as SnapshotError: throw StorageFault(.failed, error.message)
            default: throw error
            }
        }
    }

    private func open() throws(SQLiteError) -> Connection {
        let connection = try Connection(path: source, mode: .readWrite, vfs: vfs)
        // No page is read twice, so the cache only has to hold a few pages of each file.
        try connection.execute("PRAGMA foreign_keys = OFF; PRAGMA cache_size = -4096")
        return connection
    }

    private static func name(_ part: Int) -> String { "part\(part)" }

    /// Makes a file with the tables and without rows. It may become a device's file, so it is set
    /// up to give free pages back.
    private func begin(_ path: String, like source: Connection) throws {
        try DatabaseFile.remove(path, vfs: vfs)
        let pageSize = try source.integer("PRAGMA main.page_size") ?? 4_096
        let connection = try Connection(path: path, vfs: vfs)
        try connection.execute(
            """
            PRAGMA page_size = \(pageSize); PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            """)
        try connection.begin()
        for table in try SchemaMigration.tables(of: source) { try connection.execute(table) }
        try SnapshotFormat.createTables(on: connection, in: "main")
        try connection.commit()
    }

    /// Attaches a begun file for filling. After a crash it is not needed, so there is no journal.
    private func attach(_ path: String, _ part: Int, to connection: Connection) throws {
        let name = Self.name(part)
        let attach = try connection.prepare("ATTACH ?1 AS \(name)")
        attach.bind(1, text: path)
        try attach.run()
        try connection.execute(
            """
            PRAGMA \(name).journal_mode = OFF; PRAGMA \(name).synchronous = OFF;
            PRAGMA \(name).locking_mode = EXCLUSIVE; PRAGMA \(name).cache_size = -4096;
            PRAGMA ignore_check_constraints = ON;
            """)
    }

    private func fill(
        _ names: [String], _ schema: Schema, _ permissions: PermissionClass,
        on connection: Connection
    ) throws -> [SnapshotDescription] {
        try moment.begin(on: connection)
        do {
            let descriptions = try copy(names, schema, permissions, on: connection)
            try connection.commit()
            return descriptions
        } catch {
            connection.rollback()
            throw error
        }
    }

    private func copy(
        _ names: [String], _ schema: Schema, _ permissions: PermissionClass,
        on connection: Connection
    ) throws -> [SnapshotDescription] {
        let state = try connection.prepare("SELECT identity, revision, hash FROM martlet_dataset")
        guard try state.step() else { throw SQLiteError.mismatch("martlet_dataset is empty") }
        let (identity, revision) = (state.text(0), state.integer(1))
        let lineage = LineageHash(stored: state.blob(2)).text
        state.reset()
        let types = try numbered(schema, connection)
        return try names.enumerated().map { index, name in
            let part = SnapshotPart(connection: connection, database: Self.name(index))
            // In the order of numbers, each table is filled from its beginning to its end.
            for (type, number) in types.sorted(by: { $0.number < $1.number }) {
                let condition = self.condition(type.name, in: index, permissions)
                try part.copy(type, number: number, where: condition)
            }
            return SnapshotDescription(
                dataSet: identity, revision: revision, lineage: lineage,
                schema: schema.fingerprint, part: name, parts: names,
                types: schema.types.map { .init(name: $0.name, hash: RangeHash()) })
        }
    }

    /// Writes the description of a filled file into it, with the hashes of its records.
    private func finish(
        _ begun: SnapshotDescription, at path: String, _ isWanted: @escaping () -> Bool
    ) throws -> SnapshotDescription {
        let connection = try Connection(path: path, mode: .readWrite, vfs: vfs)
        connection.stopStatements { !isWanted() }
        try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        let schema = try SchemaReader.read(connection)
        var description = begun
        description.types = try numbered(schema, connection).map { type, number in
            .init(name: type.name, hash: try whole(type, number: number, connection))
        }
        try connection.begin()
        try SnapshotFormat.write(description, on: connection, in: "main")
        try connection.commit()
        return description
    }

    /// Returns the hash of a type's records, and removes those that devices cannot receive.
    private func whole(
        _ type: EntityType, number: Int64, _ connection: Connection
    ) throws(SQLiteError) -> RangeHash {
        var hasher = RowHasher(type: type, checksValues: true)
        var leftOut: [RecordID] = []
        let hash = try hasher.whole(on: connection, number: number) { id, reason in
            unsendable.note(type.name, id, reason)
            leftOut.append(id)
        }
        guard !leftOut.isEmpty else { return hash }
        let row = try connection.prepare(
            "DELETE FROM \(SQLName.quoted(type.name)) WHERE \(SQLName.quoted(type.key)) = ?1")
        let mark = try connection.prepare(
            "DELETE FROM martlet_records WHERE type = \(number) AND id = ?1")
        try connection.begin()
        for id in leftOut {
            for statement in [row, mark] {
                statement.rewind()
                statement.bind(1, id)
                try statement.run()
            }
        }
        try connection.commit()
        return try hasher.whole(on: connection, number: number)
    }

    private func condition(
        _ type: String, in part: Int, _ permissions: PermissionClass
    ) -> String? {
        guard let seeded = plan.condition(of: type, in: part) else { return nil }
        guard let visible = filter.condition(of: type, for: permissions) else { return seeded }
        return seeded.isEmpty ? visible : "\(seeded) AND (\(visible)) IS TRUE"
    }

    private func numbered(
        _ schema: Schema, _ connection: Connection
    ) throws -> [(type: EntityType, number: Int64)] {
        let find = try connection.prepare("SELECT number FROM martlet_types WHERE name = ?1")
        return try schema.types.map { type in
            find.bind(1, text: type.name)
            defer { find.reset() }
            guard try find.step() else {
                throw SQLiteError.mismatch("martlet_types lacks “\(type.name)”")
            }
            return (type, find.integer(0))
        }
    }
}

@available(*, unavailable)
extension SnapshotMaker: Sendable {}

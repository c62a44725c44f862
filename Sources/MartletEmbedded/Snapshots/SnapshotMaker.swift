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
/// let cut = try maker.make(at: { "\(folder)/\($0).sqlite" })
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
        /// The number of the view whose records it has; nil if it has all.
        package let view: Int64?
        package let parts: [Part]
    }

    private let source: String
    private let vfs: String?
    private let plan: SeedingPlan
    private let unsendable: UnsendableRows
    private let moment: ConsistentRead

    /// Makes a maker for a data set.
    ///
    /// - Parameter store: The data set's storage. The maker takes only its path from it.
    package convenience init(store: EmbeddedStore, plan: SeedingPlan = .whole) {
        self.init(
            path: store.path, vfs: store.vfs, plan: plan, unsendable: store.unsendable)
    }

    /// Makes a maker for a file.
    ///
    /// - Parameters:
    ///   - path: The file of a data set that a server keeps or kept.
    ///   - unsendable: Notes rows that are left out.
    package convenience init(
        path: String, vfs: String? = nil, plan: SeedingPlan = .whole,
        unsendable: UnsendableRows = UnsendableRows()
    ) {
        self.init(path: path, vfs: vfs, plan: plan, unsendable: unsendable, consistently: nil)
    }

    /// Makes a maker for a file that a server may have open.
    ///
    /// - Parameters:
    ///   - consistently: Makes the data set's writer take the external writes in. Without it, a file
    ///     in which some of them wait is refused.
    ///   - asksWriter: Whether the writer is asked even if no external write waits, because it brings
    ///     a view up to the rows.
    package init(
        path: String, vfs: String? = nil, plan: SeedingPlan = .whole,
        unsendable: UnsendableRows = UnsendableRows(), consistently: ConsistentReading?,
        asksWriter: Bool = false
    ) {
        moment = ConsistentRead(
            consistently: consistently, mayBeOld: true, asksWriter: asksWriter)
        self.unsendable = unsendable
        source = path
        self.vfs = vfs
        self.plan = plan
    }

    /// Makes the files of a snapshot, all of one revision, and checks each as a device would.
    ///
    /// - Parameters:
    ///   - view: The number of the view whose records the snapshot has, in one part. The storage must
    ///     have its members at the revision of the rows.
    ///   - isWanted: Called repeatedly while statements run. When it returns false, this ends with
    ///     an error.
    ///   - pathOf: Returns the path for the file of a part, by the part's name. A file there is
    ///     replaced.
    /// - Throws: `StorageFault`, `SchemaError`. Unfinished files are then removed if possible.
    package func make(
        of view: Int64 = View.everything, while isWanted: @escaping () -> Bool = { true },
        at pathOf: (_ part: String) -> String
    ) throws -> Cut {
        let plan = view == View.everything ? plan : .whole
        var paths: [String] = []
        do {
            let connection = try open()
            connection.stopStatements { !isWanted() }
            let schema = try SchemaReader.read(connection)
            let names = plan.parts(of: schema)
            paths = names.map(pathOf)
            for path in paths { try begin(path, like: connection) }
            for (index, path) in paths.enumerated() { try attach(path, index, to: connection) }
            let begun = try fill(names, schema, plan, view, on: connection)
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
                schema: first.schema, view: view == View.everything ? nil : view,
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
        _ names: [String], _ schema: Schema, _ plan: SeedingPlan, _ view: Int64,
        on connection: Connection
    ) throws -> [SnapshotDescription] {
        var tables = OpenedTables()
        try moment.begin(on: connection, &tables)
        do {
            let descriptions = try copy(names, schema, plan, view, on: connection)
            try connection.commit()
            return descriptions
        } catch {
            connection.rollback()
            throw error
        }
    }

    private func copy(
        _ names: [String], _ schema: Schema, _ plan: SeedingPlan, _ view: Int64,
        on connection: Connection
    ) throws -> [SnapshotDescription] {
        let state = try connection.prepare("SELECT identity, revision, hash FROM martlet_dataset")
        guard try state.step() else { throw SQLiteError.mismatch("martlet_dataset is empty") }
        let (identity, revision) = (state.text(0), state.integer(1))
        let lineage = DeviceLineage(
            hash: LineageHash(stored: state.blob(2)).text, views: [view]
        ).text
        state.reset()
        let types = try numbered(schema, connection)
        let shown = try shown(by: view, types.map(\.number), at: revision, connection)
        return try names.enumerated().map { index, name in
            let part = SnapshotPart(connection: connection, database: Self.name(index))
            // In the order of numbers, each table is filled from its beginning to its end.
            for (type, number) in types.sorted(by: { $0.number < $1.number }) {
                let seeded = plan.condition(of: type.name, in: index)
                try part.copy(
                    type, number: number,
                    where: seeded.flatMap { Self.condition(of: type, $0, shown[number]) })
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

    /// Returns the parts of a view, by the type's number.
    ///
    /// - Throws: `StorageFault` `.busy` if the storage has not its members at this revision.
    private func shown(
        by view: Int64, _ numbers: [Int64], at revision: Revision, _ connection: Connection
    ) throws -> [Int64: Int64] {
        guard view != View.everything else { return [:] }
        guard
            let text = try connection.text(
                "SELECT parts FROM main.martlet_views WHERE number = \(view)")
        else { throw StorageFault(.failed, "the storage has no view of the number \(view)") }
        let parts = ViewScan.parts(text, of: numbers)
        for part in parts where part > View.whole {
            let known = try connection.integer(
                "SELECT revision FROM main.martlet_type_views WHERE number = \(part)")
            guard known == revision else {
                throw StorageFault(.busy, "the view is not known at the revision of the rows")
            }
        }
        return Dictionary(zip(numbers, parts)) { $1 }
    }

    /// Returns the condition for the records of a type; nil for none.
    ///
    /// - Parameter part: The part of a view for the type; nil for all records.
    private static func condition(
        of type: EntityType, _ seeded: String, _ part: Int64?
    ) -> String? {
        switch part {
        case nil, View.whole: seeded
        case View.nothing: nil
        case let part?:
            """
            \(SQLName.list([type.key], of: type.name)) IN \
            (SELECT id FROM main.martlet_members WHERE view = \(part) AND shown)
            """
        }
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

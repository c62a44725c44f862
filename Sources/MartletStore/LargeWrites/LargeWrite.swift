public import Foundation
public import MartletModel
import SystemKit

/// A write of any number of records. It first gathers them in an auxiliary file, then writes them
/// from there in small saves. Other saves, reads and exchanges continue between two saves.
///
/// ```swift
/// let load = try await LargeWrite.open("season", in: directory, into: client)
/// if try await !load.isGathered {
///     for try await page in pages {
///         let keys = try await load.insert(page.clubs, into: Clubs())
///         try await load.insert(page.matches(ofClubs: keys), into: Matches())
///     }
///     try await load.endGathering()
/// }
/// try await load.run { show($0.done, of: $0.total) }
/// ```
///
/// It is not one save: readers see the records as they arrive, and a server decides about each save
/// separately. If gathering is interrupted, it begins again from nothing. Once it has ended,
/// each record is written exactly once, however often the app ends meanwhile: open the large write
/// under the same name and run it. `LargeWrite.unfinished` lists those that are left to run.
public struct LargeWrite: Sendable {
    /// The name of the large write, after which its auxiliary file is named.
    public let name: String
    private let folder: URL
    private let database: any DatabaseAccess
    /// The auxiliary file; nil once the write is complete or discarded.
    private let file: Confined<LargeWriteFile?>

    /// Opens or creates the auxiliary file. If gathering has not ended, its records are deleted.
    /// - Parameters:
    ///   - name: A name that no other large write into the database has.
    ///   - folder: The folder of the auxiliary file; it is made if it is missing. Choose one that
    ///     the system does not empty, as it does with caches.
    ///   - database: The database to write to: a client, or a pool.
    /// - Throws: `StoreError`: `.busy` if the file is open already, and any failure of the file.
    public static func open(
        _ name: String, in folder: URL, into database: any DatabaseAccess
    ) async throws -> LargeWrite {
        let path = url(of: name, in: folder).path
        let file = try await Confined(label: "martlet.large", ()).run { _ in
            do {
                try FileManager.default.createDirectory(
                    at: folder, withIntermediateDirectories: true)
                let file: LargeWriteFile? = try LargeWriteFile(path: path)
                return Confined(label: "martlet.large", file)
            } catch {
                throw StoreError.of(error)
            }
        }
        return LargeWrite(name: name, folder: folder, database: database, file: file)
    }

    /// Returns the names of large writes that have been gathered completely, and not yet written
    /// completely.
    /// - Throws: Foundation's errors if the folder cannot be read.
    public static func unfinished(in folder: URL) throws -> [String] {
        guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
        return try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(ending) }
            .filter { LargeWriteFile.isGathered(path: folder.appendingPathComponent($0).path) }
            .compactMap { EncodedName.decoded(String($0.dropLast(ending.count))) }
            .sorted()
    }

    private static let ending = ".martlet-large"

    private static func url(of name: String, in folder: URL) -> URL {
        folder.appendingPathComponent(EncodedName.encoded(name) + ending)
    }
}

// MARK: - Gathering

extension LargeWrite {
    /// Whether gathering has ended. Then the large write can only be run or discarded.
    /// - Throws: `StoreError` `.misuse` if it was completed or discarded.
    public var isGathered: Bool {
        get async throws { try await using { $0.isGathered } }
    }

    /// Gathers new records. The database has none of them yet.
    /// - Returns: The keys by which later records of this large write can refer to them. A key that
    ///   the database has yet to make is a number that counts within this large write only.
    /// - Throws: `StoreError`: `.unknown` and `.value` as from the table itself, `.misuse` after
    ///   gathering has ended.
    @discardableResult
    public func insert<Item: Record & Sendable>(
        _ records: [Item], into table: some Table
    ) async throws -> [RecordID] {
        let form = try await form(records, table)
        return try await using { try $0.add(.insert, form) }
    }

    /// Gathers updates of records. `records` carry the keys and the new values. If a record does
    /// not exist when the update runs, it is not created.
    /// - Throws: `StoreError`: `.unknown` and `.value` as from the table itself, `.misuse` after
    ///   gathering has ended.
    public func update<Item: Record & Sendable>(
        _ records: [Item], in table: some Table
    ) async throws {
        let form = try await form(records, table)
        _ = try await using { try $0.add(.update, form) }
    }

    /// Gathers deletions of the records with these keys.
    /// - Throws: `StoreError` `.misuse` after gathering has ended, and for a table whose key is not
    ///   one column.
    public func delete(_ keys: [RecordID], from table: some Table) async throws {
        let (tableName, declaration) = (table.tableName, table.declaration)
        let key = try await database.read { context in
            let key = try table.statements(context).description.key
            guard key.count == 1 else {
                throw StoreError(
                    .misuse,
                    "Records of “\(tableName)” have no key of one column to delete them by.")
            }
            return key[0]
        }
        let form = LargeWriteForm(
            table: tableName, declaration: declaration, key: key,
            records: keys.map { RecordValues(names: [key], values: [SQLValue($0)]) })
        _ = try await using { try $0.add(.delete, form) }
    }

    /// Ends gathering. From then on, `run` writes every gathered record exactly once.
    /// - Throws: `StoreError` if the file fails.
    public func endGathering() async throws {
        try await using { try $0.endGathering() }
    }

    /// Returns the records as the table would write them, after the table's checks.
    private func form<Item: Record & Sendable>(
        _ records: [Item], _ table: some Table
    ) async throws -> LargeWriteForm {
        try await database.read { context in
            let statements = try table.statements(context)
            let key = statements.description.key
            let values = try records.map { record in
                let values = try table.values(
                    of: record, statements, allowing: LargeWriteFile.isMade)
                if key.count == 1, values[key[0]]?.isNull == true {
                    var keyless = values
                    keyless[key[0]] = nil
                    return keyless
                }
                return values
            }
            return LargeWriteForm(
                table: table.tableName, declaration: table.declaration,
                key: key.count == 1 ? key[0] : nil, records: values)
        }
    }

    private func using<Result: Sendable>(
        _ body: @escaping @Sendable (LargeWriteFile) throws -> Result
    ) async throws -> Result {
        try await file.run { file in
            guard let file else {
                throw StoreError(
                    .misuse, "The large write is done or was discarded; open another one.")
            }
            do {
                return try body(file)
            } catch {
                throw StoreError.of(error)
            }
        }
    }
}

// MARK: - Writing

extension LargeWrite {
    /// Writes the gathered records that have not been written, save by save, and removes the
    /// auxiliary file.
    ///
    /// A cancelled task stops it between two saves. The next run continues from there.
    /// - Parameters:
    ///   - recordsPerSave: The records of one save; fewer if they have many bytes.
    ///   - progress: Called after each save.
    ///   - refused: Called for a record that the database refuses. True leaves the record out and
    ///     continues; nil and false stop with the refusal.
    /// - Returns: The outcome of the run.
    /// - Throws: `StoreError`: `.misuse` before gathering has ended, `.cancelled`, and the
    ///   database's refusal of a record.
    @discardableResult
    public func run(
        recordsPerSave: Int = 1_000,
        progress: @Sendable (LargeWriteProgress) -> Void = { _ in },
        refused: (@Sendable (LargeWriteRefusal) -> Bool)? = nil
    ) async throws -> LargeWriteProgress {
        let (identity, total) = try await using { file in
            guard file.isGathered else {
                throw StoreError(
                    .misuse, "Gathering has not ended; call endGathering() when all is gathered.")
            }
            return (file.identity, file.total)
        }
        let steps = LargeWriteSteps(name: name, identity: identity)
        var state = LargeWriteProgress(
            done: try await database.write { try steps.begin($0) }, total: total)
        while state.done < total {
            let after = state.done
            let batch = try await using { try $0.operations(after: after, limit: recordsPerSave) }
            let left = try await database.write {
                try steps.apply(batch, after: after, $0, refused)
            }
            state.done += batch.count
            state.refused += left
            progress(state)
        }
        try await removeFile()
        try await database.write { try steps.end($0) }
        return state
    }

    /// Deletes the gathered records that have not been written.
    /// - Throws: `StoreError` `.inputOutput` if the auxiliary file cannot be removed.
    public func discard() async throws {
        let identity = try await using { $0.identity }
        try await removeFile()
        let steps = LargeWriteSteps(name: name, identity: identity)
        try await database.write { try steps.end($0) }
    }

    private func removeFile() async throws {
        let url = Self.url(of: name, in: folder)
        try await file.run { file in
            file = nil
            for ending in ["", "-journal"] {
                try? FileManager.default.removeItem(atPath: url.path + ending)
            }
            guard !FileManager.default.fileExists(atPath: url.path) else {
                throw StoreError(
                    .inputOutput,
                    "The auxiliary file of the large write cannot be removed. Check its folder.")
            }
        }
    }
}

/// The progress of a large write.
public struct LargeWriteProgress: Hashable, Sendable {
    /// The records written or left out, including those of earlier runs.
    public internal(set) var done: Int
    /// The number of all records.
    public let total: Int
    /// The records that this run has left out because the database refused them.
    public internal(set) var refused = 0
}

/// A record of a large write that the database refuses.
public struct LargeWriteRefusal: Sendable {
    /// The table.
    public let table: String
    /// The record's values as they were gathered.
    public let values: RecordValues
    /// The reason for the refusal.
    public let error: StoreError
}

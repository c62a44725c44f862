package import Martlet
package import MartletModel
import MartletStore
import SQLiteRecords

/// Imports records into a device's file, in change sets.
///
/// The device assigns new integer ids, and keeps every given id with its new one. References
/// therefore hold between files, between runs, and after the server has replaced the temporary ids.
/// The progress is stored in the same transaction as the records: a killed import continues where
/// it was, and a complete one is not repeated.
package struct Importer: Sendable {
    private let client: MartletClient
    private let options: ImportOptions
    /// The bytes of values after which a change set ends, whatever `ImportOptions.setSize` is.
    private static let setBytes = 4 << 20

    package init(client: MartletClient, options: ImportOptions = ImportOptions()) {
        self.client = client
        self.options = options
    }

    /// Imports all sources, parents before children.
    ///
    /// All sources are read and checked before the first record is written.
    /// - Parameters:
    ///   - progress: Called after every change set.
    ///   - afterSet: Called after every change set with the number of sets so far, for example to
    ///     exchange with a server. An error stops the import, which can be continued later.
    /// - Throws: `CSVFault`, `TransferError`, and the client's errors. If the device refuses a record, the
    ///   `StoreError` names its line, and says how many records are saved.
    package func run(
        _ sources: [any ImportSource], schema: Schema,
        progress: (ImportProgress) -> Void = { _ in },
        afterSet: (_ sets: Int) async throws -> Void = { _ in }
    ) async throws -> ImportReport {
        let journal = ImportJournal(client: client)
        try await journal.prepare()
        if options.again { try await journal.forget(sources.map(\.type)) }
        let done = try await journal.tables()
        var maps = try await journal.maps(schema)
        let plan = try await plan(sources, schema, done: done, maps: maps)
        var report = ImportReport(records: 0, skipped: 0, changeSets: 0)
        let sourced = Set(plan.tables.map(\.type.name))
            .union(maps.filter { !$0.value.isEmpty }.keys)
        for table in plan.tables {
            let start = Self.start(of: table, done)
            report.skipped += start
            guard start < table.recordCount else { continue }
            try await load(
                table, from: start, sourced: sourced, schema: schema, maps: &maps, report: &report
            ) { report in
                progress(
                    ImportProgress(
                        type: table.type.name, done: report.records + report.skipped,
                        total: plan.recordCount))
                try await afterSet(report.changeSets)
            }
        }
        try await fillReferences(
            journal, maps: maps, schema: schema, report: &report, afterSet: afterSet)
        return report
    }

    /// Checks the sources against the schema, earlier imports and the device's records.
    private func plan(
        _ sources: [any ImportSource], _ schema: Schema, done: [String: ImportJournal.Table],
        maps: [String: [RecordID: RecordID]]
    ) async throws -> ImportPlan {
        // If a source is continued, it gives its ids again itself.
        var known = maps.filter { !$0.value.isEmpty }.mapValues { Set($0.keys) }
        for source in sources { known[source.type] = nil }
        let wanted = try await existing(sources, schema, known: known)
        let plan = try ImportPlan(
            sources: sources, schema: schema, known: known, done: done.mapValues(\.done)
        ) { type, id in wanted[type]?.contains(id) ?? false }
        for table in plan.tables {
            guard let earlier = done[table.type.name], !earlier.isContinued(by: table)
            else { continue }
            let state =
                earlier.done < earlier.total
                ? "an import of another \(table.source.label) is not finished"
                : "another \(table.source.label) was imported before"
            throw TransferError(
                "\(table.source.label): \(state). Bring the old file back to go on with it, or"
                    + " import this one as new records with --again. Only records that are not saved yet may"
                    + " change.")
        }
        return plan
    }

    /// Returns the ids of records to which sources may refer although no record of their type was
    /// imported.
    private func existing(
        _ sources: [any ImportSource], _ schema: Schema, known: [String: Set<RecordID>]
    ) async throws -> [String: Set<RecordID>] {
        let given = Set(sources.map(\.type)).union(known.keys)
        let targets = Set(sources.flatMap { schema[$0.type]?.references.map(\.target) ?? [] })
            .subtracting(given)
        var result: [String: Set<RecordID>] = [:]
        for target in targets.sorted() {
            guard let type = schema[target] else { continue }
            let key = SQLName.quoted(type.key)
            let table = SQLName.quoted(type.name)
            let ids = try await client.read { context in
                try context.rows("SELECT \(key) FROM \(table)").compactMap {
                    $0.values.first.flatMap { RecordID($0) }
                }
            }
            result[target] = Set(ids)
        }
        return result
    }

    private static func start(
        of table: ImportPlan.Table, _ done: [String: ImportJournal.Table]
    ) -> Int {
        guard let earlier = done[table.type.name] else { return 0 }
        return min(earlier.done, table.recordCount)
    }

    /// Writes one source's records from a position on.
    private func load(
        _ table: ImportPlan.Table, from start: Int, sourced: Set<String>, schema: Schema,
        maps: inout [String: [RecordID: RecordID]],
        report: inout ImportReport, afterSet: (ImportReport) async throws -> Void
    ) async throws {
        var cursor = try table.source.open(table.type)
        for _ in 0..<start { _ = try cursor.next() }
        let isReferredTo = maps[table.type.name] != nil
        var done = start
        while done < table.recordCount {
            var rows: [[Value]] = []
            var lines: [Int] = []
            var bytes = 0
            while rows.count < options.setSize, bytes < Self.setBytes,
                let values = try cursor.next()
            {
                rows.append(values)
                lines.append(cursor.line)
                bytes += values.byteCount
            }
            guard !rows.isEmpty else {
                throw TransferError(
                    "\(table.source.label) changed while it was read; run it again.")
            }
            done += rows.count
            let batch = ImportBatch(
                table: table, columns: cursor.columns, rows: rows, done: done,
                written: String(cursor.fingerprint, radix: 16), sourced: sourced, schema: schema)
            let known = maps
            let made = try await noting({ stop(of: $0, in: batch, lines) }) {
                try await client.write { try batch.write($0, maps: known) }
            }
            if isReferredTo {
                for (given, id) in made { maps[table.type.name]?[given] = id }
            }
            report.records += rows.count
            report.changeSets += 1
            try await afterSet(report)
        }
    }

    /// Fills in the references to records that came later in the sources.
    private func fillReferences(
        _ journal: ImportJournal, maps: [String: [RecordID: RecordID]], schema: Schema,
        report: inout ImportReport, afterSet: (Int) async throws -> Void
    ) async throws {
        while true {
            let count = options.setSize
            let filled = try await noting(stop(ofReference:)) {
                try await client.write { context in
                    try ImportBatch.fillReferences(
                        context, count: count, maps: maps, schema: schema)
                }
            }
            guard filled > 0 else { return }
            report.changeSets += 1
            try await afterSet(report.changeSets)
        }
    }
}

// MARK: - Refused records

extension Importer {
    /// The place at which an import stopped.
    private struct Stop {
        /// The record or reference that was refused.
        let place: String
        /// The records that are saved.
        let saved: String
        let advice: String
    }

    /// Runs `body`. If the device refuses a value or a change, the error says where the import stopped.
    private func noting<Result>(
        _ stop: (StoreError) -> Stop, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            return try await body()
        } catch var error as StoreError
            where [.correctTheValues, .askForTheRight].contains(error.remedy)
        {
            let (place, queued) = (stop(error), try await client.status().outbox)
            error.message = """
                \(place.place): \(error.message) \(place.saved); change sets that are queued: \(queued). \
                \(place.advice), and run the import again: it continues there.
                """
            throw error
        }
    }

    /// Returns the place of an error in a batch.
    /// - Parameter lines: The line of each row.
    private func stop(of error: StoreError, in batch: ImportBatch, _ lines: [Int]) -> Stop {
        let (first, last) = (lines.first ?? 0, lines.last ?? 0)
        let place =
            batch.row(refusedBy: error).map { "line \(lines[$0])" } ?? "lines \(first) to \(last)"
        let (saved, all) = (batch.done - batch.rows.count, batch.table.recordCount)
        return Stop(
            place: "\(batch.table.source.label), \(place)",
            saved: saved == 0
                ? "None of the file's \(all) records is saved"
                : "Of the file's \(all) records, the first \(saved) are saved",
            advice: "Correct the file from line \(first) on")
    }

    private func stop(ofReference error: StoreError) -> Stop {
        Stop(
            place: "A reference to a record that comes later in the files",
            saved: "All records are saved, without this reference and those that follow",
            advice: "Correct the cause")
    }
}

/// The options of an import.
package struct ImportOptions: Hashable, Sendable {
    /// The records in one change set; fewer if they take more than 4 MiB.
    package var setSize = 1_000
    /// Whether to forget earlier imports of the same types, so that new records are made.
    package var again = false

    package init() {}
}

/// The progress of an import.
package struct ImportProgress: Hashable, Sendable {
    /// The type whose records are being written.
    package let type: String
    /// The number of records written, including those of an earlier run.
    package let done: Int
    /// The number of all records.
    package let total: Int
}

/// The result of an import.
package struct ImportReport: Hashable, Sendable {
    /// The number of records written.
    package var records: Int
    /// The number of records that an earlier run had written.
    package var skipped: Int
    package var changeSets: Int
}

import Foundation
import Martlet
import MartletModel
import MartletTransfer

/// The data of a demo: a schema and the records.
struct DemoData {
    let schema: String
    let sources: [any ImportSource]
    /// The policies, and the roles of the devices; nil for data of one's own, where all see everything.
    let rules: String?
    let roles: DemoRoles?
    /// Sentences about a schema that was inferred.
    let notes: [String]

    init(_ options: DemoOptions) throws {
        guard let folder = options.dataFolder else {
            let organisation = Organisation(seed: options.seed, size: options.size)
            schema = options.schema ?? Organisation.schema
            sources = organisation.tables.map { table in
                GeneratedSource(
                    table: table,
                    label: "\(table.type) of seed \(options.seed), \(table.rows.count)")
            }
            notes = []
            rules = Organisation.rules
            roles = DemoRoles(devices: options.devices, coaches: options.size.coaches)
            return
        }
        rules = nil
        roles = nil
        let files = try CSVFile.find([folder])
        sources = files.map { CSVSource($0) }
        let beside = URL(fileURLWithPath: folder).appendingPathComponent("schema.sql")
        if let given = options.schema {
            schema = given
            notes = []
        } else if FileManager.default.fileExists(atPath: beside.path) {
            schema = try String(contentsOf: beside, encoding: .utf8)
            notes = []
        } else {
            let inference = try SchemaInference(files)
            schema = inference.script
            notes = inference.notes
        }
    }

    /// Lets the first device import the records, and exchange meanwhile.
    func load(
        into team: DemoTeam, tries: Int,
        progress: @escaping @Sendable (_ done: Int, _ total: Int, _ type: String) -> Void
    ) async throws {
        guard let office = team.devices.first else { return }
        _ = try await Importer(client: office.client).run(
            sources, schema: team.schema, progress: { progress($0.done, $0.total, $0.type) },
            afterSet: { sets in
                if sets.isMultiple(of: 8) { _ = try await office.sync(tries: tries) }
            })
        _ = try await office.sync(tries: tries)
    }
}

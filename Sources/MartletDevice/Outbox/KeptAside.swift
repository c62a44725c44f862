internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Confirmed values of one entity type for which this version of the app has no column or table.
/// The client keeps them, and puts them into the tables once these have a place for them.
public struct KeptAside: Hashable, Sendable {
    /// The entity type.
    public let type: String
    /// The attributes that its table lacks, by name; empty if the type has no table.
    public let attributes: [String]
    /// The number of records with such values.
    public let records: Int
}

extension KeptAsideTable {
    /// Returns the values kept aside, by type.
    /// - Complexity: O(*n*) in the records with such values.
    func list() throws -> [KeptAside] {
        let rows = try store.connection.statement(
            "SELECT type, attributes FROM martlet_aside ORDER BY type, id")
        defer { rows.reset() }
        var found = Kept()
        while try rows.step() {
            let type = rows.text(0)
            let isKnown = store.schema.index(of: type) != nil
            found.add(
                type, isKnown ? try SyncCoder.decodeAttributes(rows.blob(1)).names : [])
        }
        return found.list
    }

    /// Counts of values kept aside.
    struct Kept {
        private var records: [String: Int] = [:]
        private var attributes: [String: Set<String>] = [:]

        /// - Parameter names: Attributes that the type's table lacks.
        mutating func add(_ type: String, _ names: some Sequence<String>) {
            records[type, default: 0] += 1
            attributes[type, default: []].formUnion(names)
        }

        /// The counts by type.
        var list: [KeptAside] {
            records.sorted { $0.key < $1.key }.map { type, count in
                KeptAside(
                    type: type, attributes: (attributes[type] ?? []).sorted(), records: count)
            }
        }
    }
}

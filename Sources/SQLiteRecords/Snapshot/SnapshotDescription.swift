package import MartletModel
internal import MartletProtocol

/// A snapshot file's description of itself.
package struct SnapshotDescription: Hashable, Sendable {
    /// The data set's identity.
    package var dataSet: String
    /// The revision at which all rows were read.
    package var revision: Revision
    /// The chained hash of the log's entry of that revision, as on the wire.
    package var lineage: String
    /// The fingerprint of the schema.
    package var schema: String
    /// The name of the part that this file is.
    package var part: String
    /// All parts of the snapshot, the first to fetch first.
    package var parts: [String]
    /// All types, in the order of their tables, including those without records in this part.
    package var types: [TypeAccount]

    /// The records of one type in the file.
    package struct TypeAccount: Hashable, Sendable {
        package var name: String
        /// The number of records, and the sum of their hashes (`RowHasher`).
        package var hash: RangeHash

        package init(name: String, hash: RangeHash) {
            self.name = name
            self.hash = hash
        }

        package var records: Int64 { hash.count }
    }

    package init(
        dataSet: String, revision: Revision, lineage: String, schema: String, part: String,
        parts: [String], types: [TypeAccount]
    ) {
        self.dataSet = dataSet
        self.revision = revision
        self.lineage = lineage
        self.schema = schema
        self.part = part
        self.parts = parts
        self.types = types
    }

    /// The number of records of all types.
    package var records: Int64 { types.reduce(0) { $0 + $1.records } }
}

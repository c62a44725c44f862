public import MartletModel

/// The answer to `GET /snapshot`: the list of the files of a snapshot, all of one revision.
public struct SnapshotManifest: Hashable, Sendable {
    /// The format of the files. A reader that does not know it does not read them.
    public var format: Int64
    /// The data set's identity.
    public var dataSet: String
    /// The revision at which all files were made.
    public var revision: Revision
    /// The chained hash of the log's entry of that revision.
    public var lineage: String
    /// The fingerprint of the schema of the files' tables.
    public var schema: String
    /// The number of the view whose records the files have; nil if they have all records.
    public var view: Int64?
    /// The parts, the first to fetch first.
    public var parts: [Part]

    public init(
        format: Int64, dataSet: String, revision: Revision, lineage: String, schema: String,
        parts: [Part]
    ) {
        self.format = format
        self.dataSet = dataSet
        self.revision = revision
        self.lineage = lineage
        self.schema = schema
        self.parts = parts
    }

    /// One file: a SQLite database, which travels compressed.
    public struct Part: Hashable, Sendable {
        /// The name of the class of records.
        public var name: String
        /// The SHA-256 of the decompressed file, in hexadecimal. It is also the file's address.
        public var hash: String
        /// The length and checksum of the decompressed file.
        public var plain: Sum
        /// The number of its records of each type; types without any are left out.
        public var types: [TypeCount]
        /// The compressed forms in which it can be fetched.
        public var codings: [Coding]

        public init(
            name: String, hash: String, plain: Sum, types: [TypeCount], codings: [Coding]
        ) {
            self.name = name
            self.hash = hash
            self.plain = plain
            self.types = types
            self.codings = codings
        }

        /// The number of records of all types.
        public var records: Int64 { types.reduce(0) { $0 + $1.records } }

        /// The compressed form with a name, such as `gzip`; nil if there is none.
        public subscript(coding name: String) -> Coding? {
            codings.first { $0.name == name }
        }
    }

    /// The length and the CRC-32 of a file.
    public struct Sum: Hashable, Sendable {
        /// The length in bytes.
        public var bytes: Int64
        /// The checksum, as in gzip (RFC 1952).
        public var crc32: UInt32

        public init(bytes: Int64, crc32: UInt32) {
            self.bytes = bytes
            self.crc32 = crc32
        }
    }

    /// The number of records of a type in a part.
    public struct TypeCount: Hashable, Sendable {
        /// The entity type's name.
        public var name: String
        /// The number of its records.
        public var records: Int64

        public init(name: String, records: Int64) {
            self.name = name
            self.records = records
        }
    }

    /// A compressed form of a part.
    public struct Coding: Hashable, Sendable {
        /// The name: `gzip` or `zstd`; others may be added.
        public var name: String
        /// The length and checksum of the compressed file.
        public var sum: Sum

        public init(name: String, sum: Sum) {
            self.name = name
            self.sum = sum
        }
    }
}

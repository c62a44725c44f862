public import MartletModel

/// The answer to `GET /snapshot`: the files of which a snapshot consists, all of one revision.
public struct SnapshotManifest: Hashable, Sendable {
    /// The form of the files. A reader that does not know it leaves them alone.
    public var format: Int64
    /// The data set's identity.
    public var dataSet: String
    /// The revision at which all files were made.
    public var revision: Revision
    /// The chained hash of the log's entry of that revision.
    public var lineage: String
    /// The fingerprint of the schema of the files' tables.
    public var schema: String
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
        /// SHA-256 of the file as it is once decompressed, hexadecimal; also its address.
        public var hash: String
        /// The file's length and checksum once decompressed.
        public var plain: Sum
        /// How many records of each type it holds; types without any are left out.
        public var types: [TypeCount]
        /// The forms it can be fetched in.
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

        /// Records of all types.
        public var records: Int64 { types.reduce(0) { $0 + $1.records } }

        /// The form of a name, such as `gzip`; nil where it cannot be fetched so.
        public subscript(coding name: String) -> Coding? {
            codings.first { $0.name == name }
        }
    }

    /// The length and the CRC-32 of a file.
    public struct Sum: Hashable, Sendable {
        public var bytes: Int64
        /// As in gzip (RFC 1952).
        public var crc32: UInt32

        public init(bytes: Int64, crc32: UInt32) {
            self.bytes = bytes
            self.crc32 = crc32
        }
    }

    /// How many records of a type a part holds.
    public struct TypeCount: Hashable, Sendable {
        public var name: String
        public var records: Int64

        public init(name: String, records: Int64) {
            self.name = name
            self.records = records
        }
    }

    /// A compressed form of a part.
    public struct Coding: Hashable, Sendable {
        /// `gzip` or `zstd`; others may come.
        public var name: String
        /// The length and checksum of what travels.
        public var sum: Sum

        public init(name: String, sum: Sum) {
            self.name = name
            self.sum = sum
        }
    }
}

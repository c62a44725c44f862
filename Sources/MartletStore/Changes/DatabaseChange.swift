/// What one commit changed, or several taken together.
public struct DatabaseChange: Sendable {
    /// Why the data changed.
    public struct Causes: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// A save through this client or pool.
        public static let local = Causes(rawValue: 1)
        /// Others' changes arrived.
        public static let remote = Causes(rawValue: 2)
        /// An own change set was refused, and its edits were taken back.
        public static let refused = Causes(rawValue: 4)
        /// Temporary ids became permanent.
        public static let idsAssigned = Causes(rawValue: 8)
        /// Another process or connection wrote to the file.
        public static let elsewhere = Causes(rawValue: 16)
        /// The server has confirmed own changes; records may have taken values it computed.
        public static let confirmed = Causes(rawValue: 32)
    }

    /// Why; several where changes were taken together.
    public internal(set) var causes: Causes
    /// The changed records, by table.
    public internal(set) var tables: [String: ChangedRecords]
    /// Whether more may have changed than is listed, as when another process wrote.
    public internal(set) var isUnbounded: Bool

    package init(causes: Causes, tables: [String: ChangedRecords], isUnbounded: Bool = false) {
        self.causes = causes
        self.tables = tables
        self.isUnbounded = isUnbounded
    }

    /// Takes a later change together with this one.
    mutating func add(_ later: DatabaseChange) {
        causes.formUnion(later.causes)
        isUnbounded = isUnbounded || later.isUnbounded
        for (name, changed) in later.tables {
            tables[name, default: ChangedRecords()].add(changed)
        }
    }
}

extension DatabaseChange? {
    /// Takes a change together with this one, if there is one.
    mutating func add(_ later: DatabaseChange) {
        if self?.add(later) == nil { self = later }
    }
}

extension DatabaseRegion {
    /// Whether a change may show in what the query reads.
    /// - Complexity: O(*t* + *r*), *t* tables and *r* rows of the smaller side.
    func isTouched(by change: DatabaseChange) -> Bool {
        if change.isUnbounded { return true }
        for (name, changed) in change.tables {
            if tables.contains(name) { return true }
            if let watched = rows[name], changed.touches(watched) { return true }
            if virtualTables.contains(where: { name.hasPrefix($0 + "_") }) { return true }
        }
        return false
    }
}

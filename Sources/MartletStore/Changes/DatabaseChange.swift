/// The changes of one commit, or of several combined.
///
/// ```swift
/// for await change in client.changes where change.causes.contains(.remote) {
///     print(change.tables.keys.sorted())
/// }
/// ```
public struct DatabaseChange: Sendable {
    /// The reasons for which data changed.
    public struct Causes: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// The app saved through this client or pool.
        public static let local = Causes(rawValue: 1)
        /// Changes by other devices or programs arrived from the server.
        public static let remote = Causes(rawValue: 2)
        /// The server refused a change set of this device, and its edits were undone.
        public static let refused = Causes(rawValue: 4)
        /// The server assigned permanent ids in place of temporary ones.
        public static let idsAssigned = Causes(rawValue: 8)
        /// Another process or connection wrote to the file.
        public static let elsewhere = Causes(rawValue: 16)
        /// The server confirmed changes of this device. Records may have received values that the
        /// server computed.
        public static let confirmed = Causes(rawValue: 32)
    }

    /// The causes. There may be several if changes were combined.
    public internal(set) var causes: Causes
    /// The changed records, by table.
    public internal(set) var tables: [String: ChangedRecords]
    /// Whether more data may have changed than is listed, for example because another process
    /// wrote.
    public internal(set) var isUnbounded: Bool

    package init(causes: Causes, tables: [String: ChangedRecords], isUnbounded: Bool = false) {
        self.causes = causes
        self.tables = tables
        self.isUnbounded = isUnbounded
    }

    /// Combines a later change with this one.
    mutating func add(_ later: DatabaseChange) {
        causes.formUnion(later.causes)
        isUnbounded = isUnbounded || later.isUnbounded
        for (name, changed) in later.tables {
            tables[name, default: ChangedRecords()].add(changed)
        }
    }
}

extension DatabaseChange? {
    /// Combines a later change with this one, or takes it if there is none.
    mutating func add(_ later: DatabaseChange) {
        if self?.add(later) == nil { self = later }
    }
}

extension DatabaseRegion {
    /// Returns whether a change may alter the result of the query.
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

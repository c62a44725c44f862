internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// What has arrived and cannot be applied yet: parts of a difference, what came after them, and the
/// fates of own sets. They lead to a state the data set was in only together.
struct Inbox {
    let store: LocalStore

    /// A part, without its content.
    struct Part {
        let number: Int64
        let isDifference: Bool
    }

    /// Keeps a part.
    /// - Parameter body: The part, encoded.
    func add(_ set: ChangeSet, _ body: [UInt8]) throws {
        let row = try store.connection.statement(
            "INSERT INTO martlet_inbox(identifier, difference, body) VALUES (?, ?, ?)")
        if let identifier = set.identifier {
            row.bind(1, text: identifier)
        } else {
            row.bindNull(1)
        }
        row.bind(2, integer: set.isDifference ? 1 : 0)
        row.bind(3, blob: body)
        try row.run()
    }

    /// Replaces a part.
    func replace(_ part: Part, with set: ChangeSet) throws {
        let row = try store.connection.statement(
            "UPDATE martlet_inbox SET body = ? WHERE number = ?")
        row.bind(1, blob: try SyncCoder.encode(set))
        row.bind(2, integer: part.number)
        try row.run()
    }

    /// The parts in the order in which they came.
    func parts() throws -> [Part] {
        let rows = try store.connection.statement(
            "SELECT number, difference FROM martlet_inbox ORDER BY number")
        defer { rows.reset() }
        var parts: [Part] = []
        while try rows.step() {
            parts.append(Part(number: rows.integer(0), isDifference: rows.integer(1) == 1))
        }
        return parts
    }

    /// What a part holds.
    func content(of part: Part) throws -> ChangeSet {
        let find = try store.connection.statement(
            "SELECT body FROM martlet_inbox WHERE number = ?")
        find.bind(1, integer: part.number)
        defer { find.reset() }
        guard try find.step() else {
            throw StoreError(.inconsistent, "A part that was fetched is not there any more.")
        }
        return try SyncCoder.decodeChangeSet(find.blob(0))
    }

    /// The identifiers of the device's own sets among them.
    func identifiers() throws -> [String] {
        let rows = try store.connection.statement(
            "SELECT identifier FROM martlet_inbox WHERE identifier IS NOT NULL")
        defer { rows.reset() }
        var identifiers: [String] = []
        while try rows.step() { identifiers.append(rows.text(0)) }
        return identifiers
    }

    var isEmpty: Bool {
        get throws {
            try store.connection.integer("SELECT 1 FROM martlet_inbox LIMIT 1") == nil
        }
    }

    func clear() throws {
        try store.connection.run("DELETE FROM martlet_inbox")
    }
}

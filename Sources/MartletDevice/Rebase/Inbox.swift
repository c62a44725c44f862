internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Answers that have arrived and cannot be applied yet: parts of a difference, the entries after
/// them, and the verdicts on own sets. Only together do they lead to a state that the data set was
/// in.
struct Inbox {
    let store: LocalStore

    /// A part without its content.
    struct Part {
        let number: Int64
        let isDifference: Bool
    }

    /// Stores a part.
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

    /// Returns the parts in the order of their arrival.
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

    /// Returns the content of a part.
    /// - Throws: `StoreError` `.inconsistent` if the part is gone.
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

    /// Returns the identifiers of the device's own sets among the parts.
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

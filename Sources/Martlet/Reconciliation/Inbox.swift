internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// What has arrived and cannot be applied yet: parts of a difference, and what came after them.
/// They lead to a state the data set was in only together.
struct Inbox {
    let store: LocalStore

    /// Keeps a part.
    func add(_ set: ChangeSet) throws {
        let row = try store.connection.statement(
            "INSERT INTO martlet_inbox(identifier, body) VALUES (?, ?)")
        if let identifier = set.identifier {
            row.bind(1, text: identifier)
        } else {
            row.bindNull(1)
        }
        row.bind(2, blob: try SyncCoder.encode(set))
        try row.run()
    }

    /// Hands the parts over in the order in which they came, one at a time.
    func forEach(_ body: (ChangeSet) throws -> Void) throws {
        let rows = try store.connection.statement("SELECT body FROM martlet_inbox ORDER BY number")
        defer { rows.reset() }
        while try rows.step() { try body(try SyncCoder.decodeChangeSet(rows.blob(0))) }
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

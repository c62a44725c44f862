import Martlet

/// What the app does by itself about notes the server refused, because others had written about the
/// same player meanwhile: they go below what is there now. All else waits for a person.
public struct RefusedNotes: Sendable {
    private let database: any SyncedDatabase
    private let players = Players()

    public init(database: any SyncedDatabase) {
        self.database = database
    }

    /// Settles what it can.
    ///
    /// It may be interrupted anywhere and called again: lines that are there already are not written
    /// twice.
    /// - Returns: How many refused edits are settled now.
    @discardableResult
    public func converge() async throws -> Int {
        var settled = 0
        for set in try await database.parked()
        where set.reason != .permission && set.changes.allSatisfy(isNote) {
            let isWritten = try await database.write { context in
                try set.changes.allSatisfy { try append($0, in: context) }
            }
            guard isWritten else { continue }
            try await database.drop(set.identifier)
            settled += 1
        }
        return settled
    }

    /// Whether somebody wrote notes, and did nothing else to the player.
    private func isNote(_ change: ParkedChange) -> Bool {
        change.type == players.tableName && change.operation == .update
            && change.mine?.names == ["notes"]
    }

    /// Writes the lines that were added below those that are there.
    /// - Returns: False where the player is gone.
    private func append(_ change: ParkedChange, in context: WriteContext) throws -> Bool {
        guard var player = try players.find(change.id, in: context) else { return false }
        let before = lines(change.base)
        var notes = lines(player.notes)
        for line in lines(change.mine) where !before.contains(line) && !notes.contains(line) {
            notes.append(line)
        }
        player.notes = notes.joined(separator: "\n")
        try players.update(player, in: context)
        return true
    }

    private func lines(_ values: RecordValues?) -> [String] {
        guard case .text(let notes)? = values?["notes"] else { return [] }
        return lines(notes)
    }

    private func lines(_ notes: String) -> [String] {
        notes.split(separator: "\n").map(String.init)
    }
}

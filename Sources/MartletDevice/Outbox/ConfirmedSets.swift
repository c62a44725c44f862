internal import CompressionKit
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Own sets that the server has accepted, kept for a while. If the server loses them, because it
/// was restored from an older backup, the device still has them.
struct ConfirmedSets {
    let store: LocalStore
    /// The most bytes of the file that kept sets may take.
    let mostBytes: Int64

    /// The most sets that are kept.
    static let mostSets = 10_000
    /// The milliseconds for which a set is kept.
    static let longest: Int64 = 30 * 86_400_000
    /// The most bytes into which Deflate can inflate one byte.
    private static let mostInflated = 1_100
    /// The key of the stored number of bytes kept. Taking sets out deletes the number; the next
    /// `keep` counts the bytes again.
    private static let kept = "keptBytes"
    /// The bytes of a record of a set in addition to its images.
    private static let recordBytes = 48

    /// Keeps a set that is still in the queue, with its images.
    /// - Parameters:
    ///   - revision: The revision at which the server accepted it.
    ///   - now: Milliseconds since 1970.
    func keep(_ own: QueuedSet, revision: Revision, now: Int64) throws {
        guard mostBytes > 0, let frozen = try frozen(own.sequence) else { return }
        // The frozen bytes repeat the images, so they are stored compressed.
        let packed = Gzip.compress(frozen)
        let set = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_confirmed(
                sequence, identifier, revision, seen, timestamp, records, bytes, at, frozen)
            SELECT sequence, identifier, ?, seen, timestamp, records, bytes, ?, ?
            FROM martlet_outbox WHERE sequence = ?
            """)
        set.bind(1, integer: revision)
        set.bind(2, integer: now)
        set.bind(3, blob: packed)
        set.bind(4, integer: own.sequence)
        try set.run()
        let changes = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_confirmed_changes(
                sequence, type, id, operation, base_revision, base, after)
            SELECT sequence, type, id, operation, base_revision, base, after FROM martlet_changes
            WHERE sequence = ?
            """)
        changes.bind(1, integer: own.sequence)
        try changes.run()
        guard let before = try store.integerState(Self.kept) else { return try prune(now: now) }
        let total = try before + size("sequence = \(own.sequence)")
        try store.setState(Self.kept, .integer(total))
        // This is not done each time, because it goes through all kept sets.
        if total > mostBytes || own.sequence & 255 == 0 { try prune(now: now) }
    }

    /// Makes the next `keep` count the bytes again.
    func forgetSize() throws { try store.setState(Self.kept, .null) }

    private func frozen(_ sequence: Int64) throws -> [UInt8]? {
        let find = try store.connection.statement(
            "SELECT frozen FROM martlet_outbox WHERE sequence = ? AND frozen IS NOT NULL")
        find.bind(1, integer: sequence)
        defer { find.reset() }
        return try find.step() ? find.blob(0) : nil
    }

    private static let setSize = """
        length(frozen) + (
            SELECT total(ifnull(length(base), 0) + ifnull(length(after), 0) + \(recordBytes))
            FROM martlet_confirmed_changes AS change
            WHERE change.sequence = martlet_confirmed.sequence)
        """

    private func size(_ condition: String) throws -> Int64 {
        try store.connection.integer(
            "SELECT CAST(total(\(Self.setSize)) AS INTEGER) FROM martlet_confirmed WHERE \(condition)"
        )
            ?? 0
    }

    /// Deletes the oldest sets as long as there are too many, they take too many bytes, or they are
    /// too old. If they take too many bytes, it deletes an eighth more, to leave room for the next
    /// ones.
    /// - Complexity: O(*d*) in the sets deleted; the others are counted, but not read.
    func prune(now: Int64) throws {
        var bytes = try store.integerState(Self.kept) ?? size("1")
        let most = bytes > mostBytes ? mostBytes - mostBytes / 8 : mostBytes
        let beyond = try store.connection.integer(
            """
            SELECT sequence FROM martlet_confirmed
            ORDER BY sequence DESC LIMIT 1 OFFSET \(Self.mostSets)
            """)
        let rows = try store.connection.statement(
            """
            SELECT sequence, CAST(\(Self.setSize) AS INTEGER), at FROM martlet_confirmed
            ORDER BY sequence
            """)
        defer { rows.reset() }
        var last: Int64?
        while try rows.step() {
            let isBeyond = beyond.map { rows.integer(0) <= $0 } ?? false
            guard isBeyond || bytes > most || rows.integer(2) < now - Self.longest else { break }
            last = rows.integer(0)
            bytes -= rows.integer(1)
        }
        rows.reset()
        if let last { try remove("<= \(last)") }
        try store.setState(Self.kept, .integer(bytes))
        try store.connection.run(
            """
            DELETE FROM martlet_ground WHERE sequence < (
                SELECT min(sequence) FROM (
                    SELECT min(sequence) AS sequence FROM martlet_confirmed
                    UNION ALL SELECT min(sequence) FROM martlet_outbox))
            """)
    }

    /// Takes out the sets that the server accepted after a revision, and returns them, oldest
    /// first.
    func takeOut(after common: Revision) throws -> [HeldSet] {
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, timestamp, records, bytes FROM martlet_confirmed
            WHERE revision > ? ORDER BY sequence
            """)
        rows.bind(1, integer: common)
        defer { rows.reset() }
        var sets: [HeldSet] = []
        while try rows.step() {
            let sequence = rows.integer(0)
            let changes = try Outbox(store: store).changes(
                of: sequence, in: "martlet_confirmed_changes")
            sets.append(
                HeldSet(
                    sequence: sequence, identifier: rows.text(1), timestamp: rows.text(2),
                    records: rows.integer(3), bytes: rows.integer(4), changes: changes,
                    wasConfirmed: true))
        }
        rows.reset()
        for set in sets { try remove("= \(set.sequence)") }
        try forgetSize()
        return sets
    }

    /// Puts sets back into the queue, as sent: those that the server accepted after a revision and
    /// that rest on nothing newer than it. It is safe to send them again unchanged: the server
    /// repeats its verdict, or it judges them by the history that both sides share.
    /// - Returns: The number of sets.
    func queueAgain(after common: Revision) throws -> Int {
        let condition =
            "revision > \(common) AND \(Outbox.isCommon(upTo: common, in: "martlet_confirmed"))"
        let connection = store.connection
        let count = try connection.integer(
            "SELECT count(*) FROM martlet_confirmed WHERE \(condition)")
        let sequences = "(SELECT sequence FROM martlet_confirmed WHERE \(condition))"
        try connection.run(
            """
            INSERT INTO martlet_changes(sequence, type, id, operation, base_revision, base, after)
            SELECT sequence, type, id, operation, base_revision, base, after
            FROM martlet_confirmed_changes WHERE sequence IN \(sequences)
            """)
        try connection.run(
            "DELETE FROM martlet_confirmed_changes WHERE sequence IN \(sequences)")
        try connection.run(
            """
            INSERT INTO martlet_outbox(
                sequence, identifier, seen, timestamp, sent, applied, records, bytes, frozen)
            SELECT sequence, identifier, seen, timestamp, 1, 0, records, bytes, frozen
            FROM martlet_confirmed WHERE \(condition)
            """)
        try unpack(sequences)
        try connection.run("DELETE FROM martlet_confirmed WHERE \(condition)")
        try forgetSize()
        return Int(count ?? 0)
    }

    /// Restores the bytes of queued sets as they were sent.
    private func unpack(_ sequences: String) throws {
        let rows = try store.connection.prepare(
            "SELECT sequence, frozen FROM martlet_confirmed WHERE sequence IN \(sequences)")
        let update = try store.connection.prepare(
            "UPDATE martlet_outbox SET frozen = ?1 WHERE sequence = ?2")
        defer { rows.reset() }
        while try rows.step() {
            let packed = rows.blob(1)
            // Older files store them uncompressed; JSON begins with a brace.
            guard packed.first != UInt8(ascii: "{") else { continue }
            let bytes = try Gzip.inflate(
                packed, limit: Limits.inflatedBytes, ratio: Self.mostInflated, ratioFloor: 0)
            update.bind(1, blob: bytes)
            update.bind(2, integer: rows.integer(0))
            try update.run()
            update.rewind()
        }
    }

    private func remove(_ which: String) throws {
        for table in ["martlet_confirmed", "martlet_confirmed_changes"] {
            try store.connection.run("DELETE FROM \(table) WHERE sequence \(which)")
        }
    }
}

extension Outbox {
    /// Notes that a set's content may rest on all revisions that the device has now, if its `seen`
    /// is lower.
    func noteBasis(of sequence: Int64) throws {
        let note = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_ground(sequence, revision)
            SELECT queued.sequence, reached.value
            FROM martlet_outbox AS queued, martlet_state AS reached
            WHERE queued.sequence = ? AND reached.name = 'revision' AND reached.value > queued.seen
            """)
        note.bind(1, integer: sequence)
        try note.run()
    }

    /// Stores the hash of the server's history at the device's revision. The device asks for it if
    /// the history is another one some day. Stores nothing while it is unknown whether the history
    /// is still the remembered one.
    func noteLineage() throws {
        try store.connection.run(
            """
            INSERT OR IGNORE INTO martlet_lineages(revision, lineage)
            SELECT reached.value, hash.value FROM martlet_state AS reached, martlet_state AS hash
            WHERE reached.name = 'revision' AND reached.value > 0
                AND hash.name = 'lineage' AND hash.value IS NOT NULL
                AND NOT EXISTS (
                    SELECT 1 FROM martlet_state
                    WHERE name = 'anewLineage' AND value IS NOT NULL)
            """)
    }

    /// Stores the hash of the end of an answer while the tables have only its first entries. Sets that
    /// are made meanwhile rest on no revision whose hash is known, and this one is the next.
    func note(_ end: HistoryMark) throws {
        let note = try store.connection.statement(
            "INSERT OR IGNORE INTO martlet_lineages(revision, lineage) VALUES (?, ?)")
        note.bind(1, integer: end.revision)
        note.bind(2, text: end.lineage)
        try note.run()
    }

    /// Stores the hash as `noteLineage` does. If many hashes are stored, it deletes every second
    /// one of the older ones, apart from those at which a set was made.
    func markLineage() throws {
        try noteLineage()
        let count = try store.connection.integer("SELECT count(*) FROM martlet_lineages")
        guard let count, count > Self.mostLineages, count % 64 == 0 else { return }
        try store.connection.run(
            """
            DELETE FROM martlet_lineages WHERE revision IN (
                SELECT revision FROM (
                    SELECT revision, row_number() OVER (ORDER BY revision DESC) AS number
                    FROM martlet_lineages)
                WHERE number > 128 AND number % 2 = 0)
            AND revision NOT IN (
                SELECT seen FROM martlet_confirmed UNION ALL SELECT seen FROM martlet_outbox
                UNION ALL SELECT revision FROM martlet_ground)
            """)
    }

    private static let mostLineages: Int64 = 256

    /// Returns a condition on sets: their content rests on nothing newer than `common`. A set that
    /// was never sent must also have no newer base, because its bases still follow own sets that
    /// the server accepts.
    static func isCommon(
        upTo common: Revision, in table: String = "martlet_outbox"
    ) -> String {
        let basis = """
            ifnull((SELECT revision FROM martlet_ground AS basis
                WHERE basis.sequence = \(table).sequence), seen) <= \(common)
            """
        guard table == "martlet_outbox" else { return "(\(basis))" }
        return """
            (\(basis) AND (sent = 1 OR NOT EXISTS (
                SELECT 1 FROM martlet_changes AS made WHERE made.sequence = \(table).sequence
                    AND made.base_revision > \(common))))
            """
    }
}

package import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore

extension DeviceStore {
    /// Returns all that the device has, as text, one fact on a line: where it stands, the rows of its
    /// tables with their confirmed revisions, the confirmed rows under its own edits, its queued and
    /// refused sets, and the records that no table shows. Equal devices have equal texts. Times and
    /// identifiers are left out; sets have the number that the device gave them.
    ///
    /// An attribute that a row lacks is null.
    /// - Parameter showsLineage: Whether the text has the lineage.
    package func text(showsLineage: Bool = false) throws -> String {
        let text = DeviceText(store: self)
        return try
            (text.standing(showsLineage: showsLineage) + text.tables() + text.bases() + text.queue()
            + text.parked() + text.receipts() + text.keptRecords() + text.irregularities())
            .joined(separator: "\n")
    }

    /// Returns the records that the server has confirmed, each with its revision.
    package func confirmedRevisions() throws -> [String: String] {
        try DeviceText(store: self).revisions()
    }

    /// The number of records that no later part of a snapshot brings back.
    package var passedCount: Int {
        get throws { try DeviceText(store: self).passed().count }
    }
}

/// The facts of a device's file. Only this type reads Martlet's own tables for tests.
private struct DeviceText {
    let store: DeviceStore

    private func rows(_ sql: String) throws -> [[SQLValue]] {
        try store.applying.rows(sql).map(\.values)
    }

    /// Lines from a query whose columns are words, apart from the last, which holds attributes.
    private func lines(_ sql: String) throws -> [String] {
        try rows(sql).map { row in
            let words = row.dropLast().map(Self.word).filter { !$0.isEmpty }.joined(separator: " ")
            guard let attributes = try row.last.flatMap(Self.attributes) else { return words }
            return "\(words): \(attributes)"
        }
    }

    // MARK: - Standing

    func standing(showsLineage: Bool) throws -> [String] {
        let state = try rows(
            """
            WITH aims(name, words) AS (VALUES
                ('anewRevision', 'refetches up to'), ('rejoinFrom', 'rejoins from'),
                ('seedingParts', 'waits for the parts'), ('slicedRevision', 'sliced up to'),
                ('stagedRevision', 'staged up to'))
            SELECT words, value FROM aims JOIN martlet_state USING (name) WHERE value IS NOT NULL
            """)
        let parts = try rows(
            "SELECT 'staged parts:', count(*) FROM martlet_inbox HAVING count(*) > 0")
        let lineage = try rows(
            "SELECT ', lineage', value FROM martlet_state WHERE name = 'lineage' AND value IS NOT NULL"
        ).map { $0.map(Self.word).joined(separator: " ") }
        return try ["at \(store.revision)\(showsLineage ? lineage.joined() : "")"]
            + (state + parts).map { $0.map(Self.word).joined(separator: " ") }
    }

    // MARK: - Records

    private static let names = "martlet_types AS t ON t.number = type"

    func revisions() throws -> [String: String] {
        let found = try rows(
            "SELECT t.name, id, revision FROM martlet_records JOIN \(Self.names)"
        ).map { $0.map(Self.word) }
        return Dictionary(found.map { ("\($0[0]) \($0[1])", $0[2]) }) { $1 }
    }

    func tables() throws -> [String] {
        var revisions = try revisions()
        var lines: [String] = []
        for type in store.applying.schema.types {
            let key = Self.quoted(type.key)
            let found = try store.applying.rows(
                "SELECT * FROM \(Self.quoted(type.name)) ORDER BY \(key)")
            for row in found {
                let values = zip(row.names, row.values).filter { $1 != .null }
                let record =
                    "\(type.name) \(values.first { $0.0 == type.key }.map { Self.word($0.1) } ?? "")"
                let revision = revisions.removeValue(forKey: record).map { " @\($0)" } ?? ""
                let others = values.filter { $0.0 != type.key }
                    .map { "\($0) \(Self.literal($1))" }.joined(separator: ", ")
                lines.append(record + revision + (others.isEmpty ? "" : ": \(others)"))
            }
        }
        return lines
            + revisions.sorted { $0.key < $1.key }.map { "\($0.key) @\($0.value) has no row" }
    }

    func bases() throws -> [String] {
        try lines(
            """
            SELECT 'base', t.name, id, '@' || revision, CAST(image AS TEXT)
            FROM martlet_base JOIN \(Self.names) ORDER BY t.number, id
            """)
    }

    // MARK: - Sets

    private static let operations =
        "CASE operation WHEN 1 THEN 'create' WHEN 2 THEN 'update' ELSE 'delete' END"

    func queue() throws -> [String] {
        try lines(
            """
            SELECT 'queued', sequence, iif(sent, '(sent)', ''), iif(applied, '', '(not shown)'),
                \(Self.operations), t.name, id, '@' || base_revision, CAST(after AS TEXT)
            FROM martlet_changes JOIN martlet_outbox USING (sequence) JOIN \(Self.names)
            ORDER BY sequence, t.number, id
            """)
    }

    func parked() throws -> [String] {
        let numbers = try rows("SELECT sequence FROM martlet_parked ORDER BY sequence")
        return try zip(numbers, store.parked()).flatMap { number, set in
            let name = "parked \(Self.word(number[0]))"
            let cut = set.isTruthCut ? ", some true rows not told" : ""
            return ["\(name): \(set.reason.rawValue)\(cut)"]
                + set.changes.flatMap { Self.lines($0, of: name) }
        }
    }

    private static func lines(_ change: ParkedChange, of set: String) -> [String] {
        let record = "\(change.type) \(change.id)"
        let mine = change.mine.map { ": \(text($0))" } ?? ""
        var lines = [
            "\(set): \(change.operation.rawValue) \(record) @\(change.baseRevision)\(mine)"
        ]
        if let base = change.base { lines.append("\(set): base of \(record): \(text(base))") }
        if let theirs = change.theirs {
            lines.append("\(set): theirs of \(record): \(text(theirs))")
        }
        return lines
    }

    func receipts() throws -> [String] {
        try rows(
            """
            SELECT 'receipt ' || sequence || ': ' || outcome || ifnull(' at ' || revision, '')
                || ifnull(', ' || reason, '')
            FROM martlet_receipts ORDER BY sequence
            """
        ).map { Self.word($0[0]) }
    }

    // MARK: - Other records

    func keptRecords() throws -> [String] {
        let ids = try rows(
            """
            SELECT t.name || ' ' || temporary || ' is ' || id
            FROM martlet_ids JOIN \(Self.names) ORDER BY t.number, temporary DESC
            """
        ).map { Self.word($0[0]) }
        let kept = try ["aside", "quarantine"].flatMap { table in
            try lines(
                """
                SELECT '\(table)', type, id, '@' || revision, CAST(attributes AS TEXT)
                FROM martlet_\(table) ORDER BY type, id
                """)
        }
        return try ids + kept + passed() + withheld()
    }

    func passed() throws -> [String] {
        try rows("SELECT 'passed', type, id FROM martlet_passed ORDER BY type, id")
            .map { $0.map(Self.word).joined(separator: " ") }
    }

    private func withheld() throws -> [String] {
        let tables = try rows(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'martlet_withheld'")
        guard tables == [[1]] else { return [] }
        return try store.withheld().map { record in
            "withheld \(record.type) \(record.id)\(record.isShown ? "" : " (not shown)")"
        }.sorted()
    }

    func irregularities() throws -> [String] {
        let notes = try rows("SELECT count(*) FROM martlet_capture HAVING count(*) > 0")
            .map { "\(Self.word($0[0])) captured rows in no set" }
        let capture = try rows("SELECT 1 FROM martlet_control WHERE capture <> 1")
        return notes + capture.map { _ in "capture is off" }
    }

    // MARK: - Values

    private static func quoted(_ name: String) -> String {
        "\"\(name.replacing("\"", with: "\"\""))\""
    }

    /// A value as a name, without quotation marks.
    private static func word(_ value: SQLValue) -> String {
        if case .text(let text) = value { text } else { literal(value) }
    }

    private static func literal(_ value: SQLValue) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): "\"\(text)\""
        case .blob(let bytes):
            "x'\(bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())'"
        }
    }

    private static func literal(_ value: Value) -> String {
        switch value {
        case .null: "null"
        case .boolean(let flag): String(flag)
        case .integer(let number): String(number)
        case .real(let number): String(number)
        case .text(let text): "\"\(text)\""
        }
    }

    private static func text(_ values: RecordValues) -> String {
        zip(values.names, values.values).map { "\($0) \(literal($1))" }.joined(separator: ", ")
    }

    private static func text(_ attributes: Attributes) -> String {
        zip(attributes.names, attributes.values).map { "\($0) \(literal($1))" }
            .joined(separator: ", ")
    }

    /// The attributes of a column with JSON; nil if there are none.
    private static func attributes(_ json: SQLValue) throws -> String? {
        guard case .text(let json) = json else { return nil }
        return text(try SyncCoder.decodeAttributes(Array(json.utf8)))
    }
}

extension DeviceFixture {
    package func text() throws -> String { try store.text(showsLineage: true) }
}

extension SmallDevice {
    package func text() throws -> String { try store.text() }
}

internal import MartletStore
internal import SQLiteKit

/// Martlet's own tables in a device's file.
package enum DeviceTables {
    /// The format of these tables; a later release that changes them counts up and migrates.
    static let format: Int64 = 1

    static let script = """
        CREATE TABLE IF NOT EXISTS martlet_control(
            one INTEGER PRIMARY KEY CHECK (one = 1), capture INTEGER NOT NULL);
        INSERT OR IGNORE INTO martlet_control VALUES (1, 1);
        CREATE TABLE IF NOT EXISTS martlet_state(
            name TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_types(
            number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE IF NOT EXISTS martlet_records(
            type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_outbox(
            sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL UNIQUE,
            seen INTEGER NOT NULL, timestamp TEXT NOT NULL, sent INTEGER NOT NULL DEFAULT 0,
            applied INTEGER NOT NULL DEFAULT 1,
            settling INTEGER NOT NULL DEFAULT 0, records INTEGER NOT NULL, bytes INTEGER NOT NULL,
            frozen BLOB);
        CREATE INDEX IF NOT EXISTS martlet_outbox_settling ON martlet_outbox(settling)
            WHERE settling > 0;
        CREATE INDEX IF NOT EXISTS martlet_outbox_unapplied ON martlet_outbox(sequence)
            WHERE applied = 0;
        CREATE TABLE IF NOT EXISTS martlet_changes(
            sequence INTEGER NOT NULL, type INTEGER NOT NULL, id NOT NULL,
            operation INTEGER NOT NULL, base_revision INTEGER NOT NULL, base BLOB, after BLOB,
            PRIMARY KEY (sequence, type, id)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS martlet_changes_record ON martlet_changes(type, id);
        CREATE INDEX IF NOT EXISTS martlet_changes_deletes ON martlet_changes(sequence)
            WHERE operation = 3;
        CREATE TABLE IF NOT EXISTS martlet_references(
            target INTEGER NOT NULL, temporary INTEGER NOT NULL, sequence INTEGER NOT NULL,
            PRIMARY KEY (target, temporary, sequence)) WITHOUT ROWID;
        CREATE INDEX IF NOT EXISTS martlet_references_set ON martlet_references(sequence);
        CREATE TABLE IF NOT EXISTS martlet_base(
            type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL, image BLOB,
            PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_ids(
            type INTEGER NOT NULL, temporary INTEGER NOT NULL, id INTEGER NOT NULL,
            PRIMARY KEY (type, temporary)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_receipts(
            sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL, outcome TEXT NOT NULL,
            revision INTEGER, reason TEXT, message TEXT, at INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS martlet_parked(
            sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL UNIQUE, reason TEXT NOT NULL,
            message TEXT NOT NULL, seen INTEGER NOT NULL, timestamp TEXT NOT NULL,
            at INTEGER NOT NULL, \(cutColumn));
        CREATE TABLE IF NOT EXISTS martlet_parked_changes(
            sequence INTEGER NOT NULL, type INTEGER NOT NULL, id NOT NULL,
            operation INTEGER NOT NULL, base_revision INTEGER NOT NULL, base BLOB, after BLOB,
            PRIMARY KEY (sequence, type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_confirmed(
            sequence INTEGER PRIMARY KEY, identifier TEXT NOT NULL, revision INTEGER NOT NULL,
            seen INTEGER NOT NULL, timestamp TEXT NOT NULL, records INTEGER NOT NULL,
            bytes INTEGER NOT NULL, at INTEGER NOT NULL, frozen BLOB NOT NULL);
        CREATE TABLE IF NOT EXISTS martlet_confirmed_changes(
            sequence INTEGER NOT NULL, type INTEGER NOT NULL, id NOT NULL,
            operation INTEGER NOT NULL, base_revision INTEGER NOT NULL, base BLOB, after BLOB,
            PRIMARY KEY (sequence, type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_lineages(
            revision INTEGER PRIMARY KEY, lineage TEXT NOT NULL);
        CREATE TABLE IF NOT EXISTS martlet_ground(
            sequence INTEGER PRIMARY KEY, revision INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS martlet_aside(
            type TEXT NOT NULL, id NOT NULL, revision INTEGER NOT NULL, attributes BLOB NOT NULL,
            PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_inbox(
            number INTEGER PRIMARY KEY, identifier TEXT, difference INTEGER NOT NULL,
            body BLOB NOT NULL);
        CREATE TABLE IF NOT EXISTS martlet_quarantine(
            type TEXT NOT NULL, id NOT NULL, revision INTEGER NOT NULL,
            attributes BLOB NOT NULL, message TEXT NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_passed(
            type TEXT NOT NULL, id NOT NULL, PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_lease(
            one INTEGER PRIMARY KEY CHECK (one = 1), owner TEXT NOT NULL, until INTEGER NOT NULL);
        """

    /// The first temporary id. Before an insert, SQLite shows −1 to a trigger if the statement
    /// names no key, so capture refuses −1 and no record gets it.
    package static let firstTemporaryID = WriteContext.firstTemporaryID

    /// The lowest id that counts for the choice of the next one. A lower id, which today's triggers
    /// do not admit, would leave no room below it.
    package static let lowestID = -(Int64(1) << 62)

    /// The view of the next temporary id. It is below all ids that were used before the last look,
    /// and below the lowest that was noted since then, which capture stores in `martlet_state`.
    private static let newID = """
        CREATE VIEW martlet_new_id(id) AS
            SELECT min(
                (SELECT value FROM martlet_state WHERE name = 'nextTemporaryID'),
                ifnull((SELECT value FROM martlet_state WHERE name = 'lowestNotedID'), 0) - 1)
        """

    /// The tables of records that other programs have written and that cannot be sent: the earlier
    /// image, whether the table shows the new values, and the new values, as SQLite has them.
    static let withheld = """
        CREATE TABLE IF NOT EXISTS martlet_withheld(
            type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL, image BLOB,
            message TEXT NOT NULL, at INTEGER NOT NULL, shows INTEGER NOT NULL DEFAULT 1,
            PRIMARY KEY (type, id)) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS martlet_withheld_values(
            type INTEGER NOT NULL, id NOT NULL, name TEXT NOT NULL, value,
            PRIMARY KEY (type, id, name)) WITHOUT ROWID;
        """

    /// Returns whether the view of temporary ids, and the number that it needs, are up to date.
    /// SQLite keeps a view's text as it was written.
    static func areKeysBrought(_ connection: Connection) throws(SQLiteError) -> Bool {
        let view = try connection.text(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'view' AND name = 'martlet_new_id'")
        guard view == newID else { return false }
        return try connection.integer("SELECT 1 FROM martlet_state WHERE name = 'lowestNotedID'")
            != nil
    }

    /// Creates the view, and the number that it needs, if they are not up to date.
    static func bringKeys(_ connection: Connection) throws(SQLiteError) {
        guard try !areKeysBrought(connection) else { return }
        try connection.execute(
            """
            DROP VIEW IF EXISTS martlet_new_id;
            DROP INDEX IF EXISTS martlet_capture_ids;
            INSERT OR REPLACE INTO martlet_state SELECT 'lowestNotedID', ifnull(min(id), 0)
                FROM martlet_capture WHERE operation = 1 AND id BETWEEN \(lowestID) AND 0;
            \(newID);
            """)
    }

    private static let cutColumn = "cut INTEGER NOT NULL DEFAULT 0"

    /// Returns whether the table of refused sets is up to date.
    static func isParkingBrought(_ connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer(
            "SELECT 1 FROM pragma_table_info('martlet_parked') WHERE name = 'cut'") != nil
    }

    /// Brings the table of refused sets, which an earlier release may have made, up to date.
    static func bringParking(_ connection: Connection) throws(SQLiteError) {
        guard try !isParkingBrought(connection) else { return }
        try connection.execute("ALTER TABLE martlet_parked ADD COLUMN \(cutColumn)")
    }

    /// Returns the statement of the table into which triggers write, as wide as the widest type.
    static func captureTable(width: Int) -> String {
        let columns = (0..<width).map { ", v\($0)" }.joined()
        return """
            CREATE TABLE IF NOT EXISTS martlet_capture(
                n INTEGER PRIMARY KEY, type INTEGER NOT NULL, operation INTEGER NOT NULL,
                id NOT NULL\(columns));
            """
    }

    /// Returns the number of value columns of the capture table; nil if there is no such table yet.
    static func captureWidth(_ connection: Connection) throws(SQLiteError) -> Int? {
        let count = try connection.integer(
            "SELECT count(*) FROM pragma_table_info('martlet_capture') WHERE name GLOB 'v[0-9]*'")
        let exists = try connection.integer(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'martlet_capture'")
        return exists == nil ? nil : Int(count ?? 0)
    }
}

internal import MartletServerCore
package import SQLiteKit

/// Martlet's own tables in a data set's file. The user's tables stay as they are.
package enum EmbeddedTables {
    /// The format of these tables. It rises with every change with which an older server could not
    /// work. 2: entries may have lost their bodies, and announced values of new columns have a
    /// place. 3: external writes are noted. 4: the members of views have a place. 5: so
    /// have the confirmations of devices. 6: and the columns of the tables.
    package static let format: Int64 = 6

    /// Creates the tables in a file that has none.
    ///
    /// - Throws: `SQLiteError`.
    package static func create(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE martlet_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
            CREATE TABLE martlet_dataset (
                number INTEGER PRIMARY KEY CHECK (number = 1), identity TEXT NOT NULL,
                revision INTEGER NOT NULL, hash BLOB NOT NULL);
            CREATE TABLE martlet_types (
                number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
                next_id INTEGER NOT NULL);
            CREATE TABLE martlet_devices (
                number INTEGER PRIMARY KEY, client_id TEXT NOT NULL UNIQUE,
                principal TEXT NOT NULL, acknowledged INTEGER NOT NULL,
                since INTEGER NOT NULL);
            CREATE TABLE martlet_ids (
                device INTEGER, type INTEGER, temporary INTEGER, id INTEGER NOT NULL,
                PRIMARY KEY (device, type, temporary)) WITHOUT ROWID;
            CREATE TABLE martlet_records (
                type INTEGER, id, revision INTEGER NOT NULL, author INTEGER NOT NULL,
                others INTEGER NOT NULL, deleted INTEGER NOT NULL,
                PRIMARY KEY (type, id)) WITHOUT ROWID;
            CREATE TABLE martlet_log (
                revision INTEGER PRIMARY KEY, device INTEGER NOT NULL, identifier TEXT,
                sequence INTEGER, content BLOB, hash BLOB NOT NULL, time INTEGER NOT NULL,
                temporaries TEXT, body BLOB NOT NULL);
            CREATE UNIQUE INDEX martlet_log_identifier ON martlet_log (identifier)
                WHERE identifier IS NOT NULL;
            CREATE UNIQUE INDEX martlet_log_sequence ON martlet_log (device, sequence)
                WHERE sequence IS NOT NULL AND device <> 0;
            CREATE TABLE martlet_refusals (
                number INTEGER PRIMARY KEY, device INTEGER NOT NULL, sequence INTEGER,
                identifier TEXT, content BLOB NOT NULL, reason TEXT NOT NULL,
                message TEXT NOT NULL, time INTEGER NOT NULL);
            CREATE UNIQUE INDEX martlet_refusals_identifier ON martlet_refusals (identifier)
                WHERE identifier IS NOT NULL;
            CREATE UNIQUE INDEX martlet_refusals_sequence
                ON martlet_refusals (device, sequence) WHERE sequence IS NOT NULL;
            """)
        try createForDifferences(in: connection)
        try createForExternal(in: connection)
        try createForViews(in: connection)
        try createForPurges(in: connection)
        try createForColumns(in: connection)
    }

    /// Creates the index and the table from which a difference is read, in addition to the records.
    /// The index has the records in the order of their last changes. The table has rows that a new
    /// column gave a value, which is no change of theirs, at the revision that announced it. It also has
    /// records with the keys of deleted ones, at the revision that made them; see `ViewScan.remadeType`.
    static func createForDifferences(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE INDEX martlet_records_revision ON martlet_records (revision);
            CREATE TABLE martlet_announced (
                revision INTEGER, type INTEGER, id, PRIMARY KEY (revision, type, id)
                ) WITHOUT ROWID;
            """)
    }

    /// Creates the table for notes of external writes; see `ExternalTriggers`. `applying` is 1 only
    /// within the server's own transactions, so no other connection ever sees it.
    static func createForExternal(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            ALTER TABLE martlet_dataset ADD COLUMN applying INTEGER NOT NULL DEFAULT 0;
            CREATE TABLE martlet_outside (number INTEGER PRIMARY KEY, type INTEGER NOT NULL, id);
            """)
    }

    /// Creates the tables for what policies show to whom; see `ViewStorage`. `shown` is false for a
    /// record that a type view once showed; `moved` is the revision since which that is so, and
    /// `first` the one at which it was shown first.
    static func createForViews(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE martlet_type_views (
                number INTEGER PRIMARY KEY, type INTEGER NOT NULL, key BLOB NOT NULL UNIQUE,
                revision INTEGER);
            CREATE TABLE martlet_members (
                view INTEGER, id, first INTEGER NOT NULL, moved INTEGER NOT NULL,
                shown INTEGER NOT NULL, PRIMARY KEY (view, id)) WITHOUT ROWID;
            CREATE INDEX martlet_members_moved ON martlet_members (view, moved);
            CREATE TABLE martlet_views (
                number INTEGER PRIMARY KEY AUTOINCREMENT, parts TEXT NOT NULL UNIQUE);
            CREATE TABLE martlet_given (
                principal TEXT, view INTEGER, first INTEGER NOT NULL, last INTEGER NOT NULL,
                PRIMARY KEY (principal, view)) WITHOUT ROWID;
            """)
    }

    /// Creates the table for what each device has confirmed last; see `PurgeReceipt`.
    static func createForPurges(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE martlet_purges (
                device INTEGER PRIMARY KEY, view INTEGER NOT NULL, revision INTEGER NOT NULL,
                records INTEGER NOT NULL, hash TEXT NOT NULL, time INTEGER NOT NULL);
            """)
    }

    /// Creates the table for the columns of the user's tables as the server left them; see `OpenedTables`.
    static func createForColumns(in connection: Connection) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE martlet_columns (
                type INTEGER, position INTEGER, name TEXT NOT NULL, PRIMARY KEY (type, position)
                ) WITHOUT ROWID;
            """)
    }

    /// Returns how the user's tables differ from the state in which the server left them, in words; nil if they do
    /// not, or if the file has an older format.
    /// - Throws: `SQLiteError`.
    package static func change(in connection: Connection) throws(SQLiteError) -> String? {
        var tables = OpenedTables()
        return try tables.fault(on: connection)?.description
    }

    static func exist(in connection: Connection) throws(SQLiteError) -> Bool {
        try connection.integer(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'martlet_dataset'") == 1
    }
}

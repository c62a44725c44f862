import PostgresKit

@testable import MartletPostgres

/// Something that is not as it should be around a data set, and who is to say so. `#` stands for the number
/// of the tables “items#” and “lists#”, `@` for the database's name, `~` for a role that doctor has, and `&`
/// for the data set's publication.
struct WrongSetup: Sendable, CustomStringConvertible {
    let sql: String
    let undo: String
    /// The word of `martlet doctor` for what it finds, and what its sentence holds.
    let check: String
    let words: String
    /// Whether a server that runs says so, too.
    var isNoticed = false
    /// How other programs' writes have to be found for it to matter; nil if that is the same.
    var capture: ExternalCapture?
    /// Whether no other session may begin afterwards.
    var isLast = false

    var description: String { sql }
    var isOfPublication: Bool { sql.contains("PUBLICATION &") }
    var drops: Bool { sql.hasPrefix("DROP PUBLICATION") }

    static let all: [WrongSetup] = tables + triggers + logical + sessions

    private static func change(
        _ change: String, undo: String, _ words: String, isNoticed: Bool = true
    ) -> WrongSetup {
        WrongSetup(
            sql: "ALTER TABLE items# \(change)", undo: undo, check: "tables", words: words,
            isNoticed: isNoticed)
    }

    private static let tables: [WrongSetup] = [
        WrongSetup(
            sql: "ALTER TABLE items# ENABLE ROW LEVEL SECURITY",
            undo: "ALTER TABLE items# DISABLE ROW LEVEL SECURITY", check: "rules",
            words: "row-level security of “items#” does not apply", isNoticed: true),
        WrongSetup(
            sql: "CREATE TABLE more# () INHERITS (items#)", undo: "DROP TABLE more#",
            check: "tables", words: "“items#” inherits", isNoticed: true),
        WrongSetup(
            sql: "CREATE TABLE above# (n integer); ALTER TABLE items# INHERIT above#",
            undo: "ALTER TABLE items# NO INHERIT above#", check: "tables",
            words: "“items#” inherits", isNoticed: true),
        change(
            "ADD COLUMN gap interval", undo: "ALTER TABLE items# DROP COLUMN gap",
            "in table “items#”, column “gap”"),
        change(
            "ADD COLUMN net inet", undo: "ALTER TABLE items# DROP COLUMN net",
            "in table “items#”, column “net”"),
        change(
            "RENAME TO renamed#", undo: "ALTER TABLE renamed# RENAME TO items#",
            "“items#” is called “renamed#”"),
        WrongSetup(
            sql: "ALTER TABLE items# SET UNLOGGED", undo: "ALTER TABLE items# SET LOGGED",
            check: "unlogged", words: "items#", capture: .triggers),
        WrongSetup(
            sql: "ALTER TABLE _martlet.devices SET UNLOGGED",
            undo: "ALTER TABLE _martlet.devices SET LOGGED", check: "unlogged",
            words: "_martlet.devices"),
        WrongSetup(
            sql: "ALTER SEQUENCE items#_id_seq MAXVALUE 60",
            undo: "ALTER SEQUENCE items#_id_seq NO MAXVALUE", check: "sequences",
            words: "items#_id_seq"),
        WrongSetup(
            sql: "SELECT setval('items#_id_seq', 2)", undo: "SELECT setval('items#_id_seq', 900)",
            check: "sequences", words: "items#_id_seq stands at 2"),
        WrongSetup(
            sql: "ALTER TABLE items# OWNER TO martlet; REVOKE ALL ON items# FROM martlet_owner",
            undo: "ALTER TABLE items# OWNER TO martlet_owner", check: "rights",
            words: "“items#” cannot be read", capture: .triggers),
    ]

    private static let adoption = "-- adopt items#"

    private static let triggers: [WrongSetup] = [
        ("ALTER TABLE items# DISABLE TRIGGER USER", "trigger “martlet_truncate”"),
        ("ALTER TABLE items# DISABLE TRIGGER martlet_insert", "trigger “martlet_insert”"),
        ("ALTER TABLE items# ENABLE ALWAYS TRIGGER martlet_update", "trigger “martlet_update”"),
        ("ALTER TABLE items# ENABLE TRIGGER martlet_replica", "trigger “martlet_replica”"),
        ("DROP TRIGGER martlet_delete ON items#", "trigger “martlet_delete” is missing"),
        (
            """
            DROP TRIGGER martlet_key ON items#; CREATE TRIGGER martlet_key AFTER UPDATE OF id ON items# \
            FOR EACH ROW EXECUTE FUNCTION _martlet.note_key_%()
            """, "trigger “martlet_key” fires only"
        ),
        (
            "ALTER FUNCTION _martlet.note_rows_%() SECURITY INVOKER",
            "the function of trigger “martlet_insert” lacks SECURITY DEFINER"
        ),
        (
            """
            CREATE OR REPLACE FUNCTION _martlet.note_rows_%() RETURNS trigger LANGUAGE plpgsql \
            SECURITY DEFINER AS 'BEGIN RETURN NULL; END'
            """, "trigger “martlet_update” runs a function that is not Martlet's"
        ),
    ].map { sql, words in
        WrongSetup(
            sql: sql, undo: adoption, check: "triggers", words: "table “items#”: \(words)",
            capture: .triggers)
    }

    private static let logical: [WrongSetup] = [
        WrongSetup(
            sql: "ALTER TABLE items# DISABLE TRIGGER martlet_behind", undo: adoption,
            check: "triggers", words: "martlet_behind", capture: .logical),
        WrongSetup(
            sql: "ALTER TABLE items# REPLICA IDENTITY NOTHING",
            undo: "ALTER TABLE items# REPLICA IDENTITY DEFAULT", check: "slots",
            words: "replica identity of the table “items#”", capture: .logical),
        WrongSetup(
            sql: "ALTER TABLE items# REPLICA IDENTITY USING INDEX code#",
            undo: "ALTER TABLE items# REPLICA IDENTITY DEFAULT", check: "slots",
            words: "replica identity of the table “items#”", capture: .logical),
        WrongSetup(
            sql: "ALTER PUBLICATION & DROP TABLE items#", undo: "-- read", check: "slots",
            words: "does not send all of “items#”", capture: .logical),
        WrongSetup(
            sql: "ALTER PUBLICATION & SET (publish = 'insert')", undo: "-- read", check: "slots",
            words: "does not send all of", capture: .logical),
        WrongSetup(
            sql: "DROP PUBLICATION &", undo: "-- read", check: "slots", words: "is gone",
            capture: .logical),
        WrongSetup(
            sql: "-- drop the slot &", undo: "-- read", check: "slots",
            words: "is gone", capture: .logical),
        WrongSetup(
            sql: "SELECT pg_create_logical_replication_slot('martlet_left_@', 'pgoutput')",
            undo: "SELECT pg_drop_replication_slot('martlet_left_@')", check: "slots",
            words: "is no data set's", capture: .logical),
    ]

    private static let sessions: [WrongSetup] =
        [
            ("statement_timeout", "1000"), ("default_transaction_read_only", "on"),
            ("session_replication_role", "replica"),
        ].map { name, value in
            WrongSetup(
                sql: "ALTER DATABASE @ SET \(name) = '\(value)'",
                undo: "ALTER DATABASE @ RESET ALL",
                check: "settings", words: "\(name)=\(value)")
        } + [
            WrongSetup(
                sql: "ALTER DATABASE @ SET synchronous_commit = off",
                undo: "ALTER DATABASE @ RESET ALL", check: "settings",
                words: "synchronous_commit is off"),
            WrongSetup(
                sql: "ALTER ROLE ~ SET synchronous_commit = off", undo: "ALTER ROLE ~ RESET ALL",
                check: "settings", words: "synchronous_commit is off"),
        ]
        + (0..<5).flatMap { most in
            [
                WrongSetup(
                    sql: "ALTER DATABASE @ CONNECTION LIMIT \(most)",
                    undo: "ALTER DATABASE @ CONNECTION LIMIT -1", check: "connections",
                    words: "The database \"@\" may have \(most) connections", isLast: true),
                WrongSetup(
                    sql: "ALTER ROLE ~ CONNECTION LIMIT \(most)",
                    undo: "ALTER ROLE ~ CONNECTION LIMIT -1", check: "connections",
                    words: "The role \"~\" may have \(most) connections", isLast: true),
            ]
        }
}

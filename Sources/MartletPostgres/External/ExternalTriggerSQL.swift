import MartletModel
import PostgresKit
import SQLiteRecords

/// The statements that make one table's triggers.
struct ExternalTriggerSQL {
    let table: PostgresTable
    /// The number of the key column in its table.
    let keyNumber: Int64
    let capture: ExternalCapture
    let truncation: ExternalTriggers.Truncation

    /// Returns the triggers, and the sessions in which they fire: O for those of ordinary programs,
    /// R for those that replay another server's changes, A for all.
    static func names(_ capture: ExternalCapture) -> [String: String] {
        switch capture {
        case .triggers:
            [
                "martlet_insert": "O", "martlet_update": "O", "martlet_delete": "O",
                "martlet_key": "O", "martlet_truncate": "A", "martlet_replica": "R",
            ]
        case .logical: ["martlet_behind": "A", "martlet_truncate": "A"]
        }
    }

    /// The names of all triggers that a table may have.
    private static let allNames = Set(ExternalCapture.allCases.flatMap { names($0).keys })

    private var key: String { table.key.sqlName }

    private func function(_ purpose: String) -> String {
        "_martlet.note_\(purpose)_\(table.number)"
    }

    private static let purposes = ["rows", "key", "row", "truncate"]

    var dropTriggers: String {
        Self.allNames.sorted().map { "DROP TRIGGER IF EXISTS \($0) ON \(table.sqlName)" }
            .joined(separator: ";\n")
    }

    var dropFunctions: String {
        Self.purposes.map { "DROP FUNCTION IF EXISTS \(function($0))()" }.joined(separator: ";\n")
    }

    // MARK: - Triggers

    /// The condition for an external write. Martlet's own transactions set this setting, and are
    /// not noted.
    private static let isExternal =
        "pg_catalog.current_setting('martlet.applying', true) IS DISTINCT FROM 'on'"

    /// The condition for a session of the server that carries out a set whose rows must be noted.
    /// In sessions that never set the setting, it is null. In others it never is null again, so any
    /// value that a trigger may have given it counts, too.
    private static let isBehind = "pg_catalog.current_setting('martlet.applying', true) <> 'on'"

    var triggers: [String] {
        switch capture {
        case .triggers: noting + truncating
        case .logical: behind + truncating
        }
    }

    private var on: String { "ON \(table.sqlName)" }

    private var truncating: [String] {
        [
            """
            CREATE TRIGGER martlet_truncate BEFORE TRUNCATE \(on) FOR EACH STATEMENT \
            EXECUTE FUNCTION \(function("truncate"))()
            """,
            "ALTER TABLE \(table.sqlName) ENABLE ALWAYS TRIGGER martlet_truncate",
        ]
    }

    /// The trigger for changes that the database makes apart from Martlet's statements. They belong
    /// to the set, and must be known before its transaction ends. The user's triggers may write in
    /// the role of a replica.
    private var behind: [String] {
        [
            """
            CREATE TRIGGER martlet_behind AFTER INSERT OR UPDATE OR DELETE \(on) FOR EACH ROW \
            WHEN (\(Self.isBehind)) EXECUTE FUNCTION \(function("row"))()
            """,
            "ALTER TABLE \(table.sqlName) ENABLE ALWAYS TRIGGER martlet_behind",
        ]
    }

    private var noting: [String] {
        func statements(_ event: String, _ side: String) -> String {
            """
            CREATE TRIGGER martlet_\(event.lowercased()) AFTER \(event) \(on) \
            REFERENCING \(side) TABLE AS martlet_rows FOR EACH STATEMENT \
            WHEN (\(Self.isExternal)) EXECUTE FUNCTION \(function("rows"))()
            """
        }
        return [
            statements("INSERT", "NEW"), statements("UPDATE", "NEW"), statements("DELETE", "OLD"),
            // A new key is a new record, and the old record is gone. The trigger is not “UPDATE OF”
            // the key, because another trigger may change the key in a statement that does not name
            // it.
            """
            CREATE TRIGGER martlet_key AFTER UPDATE \(on) FOR EACH ROW \
            WHEN (OLD.\(key) IS DISTINCT FROM NEW.\(key) AND \(Self.isExternal)) \
            EXECUTE FUNCTION \(function("key"))()
            """,
            """
            CREATE TRIGGER martlet_replica AFTER INSERT OR UPDATE OR DELETE \(on) \
            FOR EACH ROW WHEN (\(Self.isExternal)) EXECUTE FUNCTION \(function("row"))()
            """,
            "ALTER TABLE \(table.sqlName) ENABLE REPLICA TRIGGER martlet_replica",
        ]
    }

    // MARK: - Functions

    var functions: [String] {
        switch capture {
        case .triggers:
            [
                create("rows", rowsBody), create("key", rowBody(["OLD"])),
                create("row", anyRowBody), create("truncate", truncateBody(truncation)),
            ]
        case .logical: [create("row", anyRowBody), create("truncate", truncateBody(truncation))]
        }
    }

    /// Returns the bodies that the function of a trigger may have.
    func bodies(of trigger: String) -> [String] {
        switch trigger {
        case "martlet_key": [rowBody(["OLD"])]
        case "martlet_replica", "martlet_behind": [anyRowBody]
        case "martlet_truncate": ExternalTriggers.Truncation.allCases.map { truncateBody($0) }
        default: [rowsBody]
        }
    }

    private func create(_ purpose: String, _ body: String) -> String {
        """
        CREATE OR REPLACE FUNCTION \(function(purpose))() RETURNS trigger LANGUAGE plpgsql \
        SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $martlet$\(body)$martlet$;
        REVOKE ALL ON FUNCTION \(function(purpose))() FROM PUBLIC
        """
    }

    /// Finds the present name of the key.
    private var nameLookup: String {
        """
        SELECT attname INTO called FROM pg_attribute \
        WHERE attrelid = TG_RELID AND attnum = \(keyNumber);
        """
    }

    /// Notes the transaction, once. It does not for changes that the database makes apart from
    /// Martlet's own statements, because those are taken before the transaction ends.
    private static let noteTransaction = """
        IF current_setting('martlet.applying', true) IS DISTINCT FROM 'capture' THEN
            INSERT INTO _martlet.foreign_transactions (transaction, author)
                VALUES (pg_current_xact_id(),
                    coalesce(nullif(current_setting('martlet.author', true), ''), session_user))
                ON CONFLICT DO NOTHING;
        END IF;
        """

    private var rowsBody: String {
        """

        DECLARE
            called name;
            noted bigint;
        BEGIN
            \(nameLookup)
            IF called = \(literal(table.key.name)) THEN
                INSERT INTO _martlet.foreign_changes (type, id)
                    SELECT \(table.number), r.\(key)::text FROM martlet_rows AS r;
            ELSE
                EXECUTE format('INSERT INTO _martlet.foreign_changes (type, id)
                    SELECT \(table.number), r.%I::text FROM martlet_rows AS r', called);
            END IF;
            GET DIAGNOSTICS noted = ROW_COUNT;
            IF noted > 0 THEN
                \(Self.noteTransaction)
            END IF;
            RETURN NULL;
        END
        """
    }

    /// Returns the statements that note the rows that a row trigger knows under these names.
    private func notes(_ rows: [String]) -> String {
        rows.map { row in
            """
            IF called = \(literal(table.key.name)) THEN
                INSERT INTO _martlet.foreign_changes (type, id)
                    VALUES (\(table.number), \(row).\(key)::text);
            ELSE
                EXECUTE format('INSERT INTO _martlet.foreign_changes (type, id)
                    SELECT \(table.number), ($1).%I::text', called) USING \(row);
            END IF;
            """
        }.joined(separator: "\n")
    }

    private func rowBody(_ rows: [String]) -> String {
        """

        DECLARE
            called name;
        BEGIN
            \(nameLookup)
            \(notes(rows))
            \(Self.noteTransaction)
            RETURN NULL;
        END
        """
    }

    private var anyRowBody: String {
        """

        DECLARE
            called name;
        BEGIN
            \(nameLookup)
            IF TG_OP <> 'INSERT' THEN
                \(notes(["OLD"]))
            END IF;
            IF TG_OP <> 'DELETE' THEN
                \(notes(["NEW"]))
            END IF;
            \(Self.noteTransaction)
            RETURN NULL;
        END
        """
    }

    private func truncateBody(_ truncation: ExternalTriggers.Truncation) -> String {
        switch truncation {
        case .refused:
            """

            BEGIN
                RAISE EXCEPTION 'TRUNCATE of a table that Martlet synchronises: "%"', TG_TABLE_NAME
                    USING ERRCODE = 'feature_not_supported', HINT =
                        'Use DELETE, or adopt the table again so that TRUNCATE deletes all rows.';
            END
            """
        case .deletes:
            """

            DECLARE
                called name;
            BEGIN
                IF NOT (\(isNotedTruncation)) THEN
                    RETURN NULL;
                END IF;
                \(nameLookup)
                EXECUTE format('INSERT INTO _martlet.foreign_changes (type, id)
                    SELECT \(table.number), r.%I::text FROM %s AS r', called, TG_RELID::regclass);
                \(Self.noteTransaction)
                RETURN NULL;
            END
            """
        }
    }

    /// The condition for noting a TRUNCATE here. In other sessions the write-ahead log reports it.
    private var isNotedTruncation: String {
        capture == .logical ? "coalesce(\(Self.isBehind), false)" : "true"
    }

    private func literal(_ text: String) -> String { SQLName.literal(text) }
}

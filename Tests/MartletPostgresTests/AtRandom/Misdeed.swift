import PostgresKit

/// Something that the function of a trigger does, well or badly, and what may become of a set that it runs
/// with.
struct Misdeed {
    /// What becomes of a set.
    enum Fate: Hashable {
        case accepted
        /// It is to be sent again, since the set is not at fault.
        case putOff
        /// It is refused for good, in the words of the tables.
        case refused
    }

    /// In PL/pgSQL, with a semicolon.
    let body: String
    /// What the function says of itself.
    var clause = ""
    let fates: Set<Fate>
    /// Whether it may be tried but a few times a minute: it takes long, or ends the connection.
    var isCostly = false
    /// Whether it can only stand in a trigger that fires before a row is written.
    var isBefore = false
    /// Whether what it does belongs to the data set, and has to be in the log.
    var writes = false
    /// Whether it stands on the log of Martlet's own, and not on a table of the data set.
    var isOnLog = false

    // MARK: - Drawing

    /// - Parameter isLight: Whether those that take seconds are left out.
    static func draw(_ chance: inout Chance, isLight: Bool) -> Misdeed {
        switch chance.number(0..<100) {
        case 0..<18: return error(&chance)
        case 18..<46: return setting(&chance)
        case 46..<60: return write(&chance)
        case 60..<72: return changedRow(&chance)
        case 72..<80: return chance.one(of: commands)
        case 80..<86: return late(&chance)
        case 86..<92: return end(&chance)
        case 92..<95: return ofLog(&chance)
        default: return isLight ? error(&chance) : slow
        }
    }

    /// Codes that say something of the set, of what was in its way, and of the server.
    private static let ofSets = [
        "P0001", "P0002", "23514", "23505", "23503", "23502", "23P01", "22003", "22P02", "44000",
        "21000", "54000", "38000",
    ]
    private static let ofServers = [
        "08006", "08001", "0A000", "0B000", "25006", "26000", "28P01", "2D000", "3D000", "3F000",
        "40000", "40001", "40002", "40003", "40P01", "42501", "42P01", "42703", "53000", "53100",
        "53200", "53300", "53400", "54001", "55000", "55006", "55P03", "57014", "57P01", "58030",
        "72000", "F0000", "HV000", "XX000", "XX001",
    ]

    private static func error(_ chance: inout Chance) -> Misdeed {
        let isOfSet = chance.percent(30)
        let code = chance.one(of: isOfSet ? ofSets : ofServers)
        let words = chance.percent(15) ? "cached plan must not change result type" : "not now"
        return Misdeed(
            body: "RAISE EXCEPTION '\(words)' USING ERRCODE = '\(code)';",
            fates: [isOfSet ? .refused : .putOff])
    }

    /// Some on which Martlet's own statements depend.
    private static let vital = [
        ("client_encoding", ["LATIN1", "SQL_ASCII", "EUC_JP", "WIN1252"]),
        ("client_encoding", ["LATIN1", "WIN1250"]),
        ("session_replication_role", ["replica", "local"]),
        ("array_nulls", ["off"]), ("transaction_read_only", ["on"]),
        ("martlet.applying", ["off", "on", "capture", ""]),
    ]
    private static let others = [
        ("role", ["none", "martlet_other"]), ("session_authorization", ["martlet_other"]),
        ("search_path", ["pg_catalog", "elsewhere, public", ""]),
        ("DateStyle", ["German", "SQL, DMY"]), ("IntervalStyle", ["sql_standard"]),
        ("TimeZone", ["Asia/Tokyo", "Mars"]), ("extra_float_digits", ["-15", "0"]),
        ("bytea_output", ["escape"]), ("standard_conforming_strings", ["off"]),
        ("default_transaction_isolation", ["serializable"]),
        ("default_transaction_read_only", ["on"]), ("synchronous_commit", ["off", "local"]),
        ("statement_timeout", ["1", "9000", "0"]), ("lock_timeout", ["1", "0"]),
        ("idle_in_transaction_session_timeout", ["9000"]),
        ("plan_cache_mode", ["force_custom_plan"]), ("enable_seqscan", ["on"]), ("jit", ["on"]),
        ("martlet.author", ["somebody"]),
        ("work_mem", ["64", "much"]), ("default_tablespace", ["nope"]), ("row_security", ["off"]),
        ("transform_null_equals", ["on"]), ("quote_all_identifiers", ["on"]),
        ("client_min_messages", ["error", "debug5"]), ("check_function_bodies", ["off"]),
        ("constraint_exclusion", ["on"]), ("xmloption", ["document"]), ("lc_messages", ["C"]),
        ("enable_indexscan", ["off"]), ("default_transaction_deferrable", ["on"]),
        ("escape_string_warning", ["off"]), ("temp_tablespaces", ["nope"]),
        ("application_name", ["é"]), ("lo_compat_privileges", ["on"]),
    ]

    /// A SET that stays, one for the transaction, and one that the function takes back.
    private static func setting(_ chance: inout Chance) -> Misdeed {
        let (name, values) = chance.one(of: chance.percent(60) ? vital : others)
        let value = chance.one(of: values)
        let isRights = chance.percent(40)
        let clause = isRights ? " SECURITY DEFINER" : ""
        if chance.percent(15), !["role", "session_authorization"].contains(name) {
            // The function's own, which end with it. Whether it may have them is found out when it is made.
            return Misdeed(
                body: "NULL;", clause: " SECURITY DEFINER SET \(name) = '\(value)'",
                fates: [.accepted, .putOff])
        }
        return Misdeed(
            body: "PERFORM pg_catalog.set_config('\(name)', '\(value)', \(chance.percent(50)));",
            clause: clause, fates: [.accepted, .putOff])
    }

    /// What a good trigger does, too: rows of another table.
    private static func write(_ chance: inout Chance) -> Misdeed {
        let statement = chance.one(of: [
            "INSERT INTO public.traces (note) VALUES ('é ' || TG_OP);",
            "UPDATE public.traces SET note = coalesce(note, '') || '+' WHERE id <= 3;",
            "DELETE FROM public.traces WHERE id = (SELECT max(id) FROM public.traces);",
            "UPDATE public.traces SET id = id + 100 WHERE id = (SELECT max(id) FROM public.traces);",
            """
            MERGE INTO public.traces AS t USING (SELECT 1::bigint AS id) AS s ON t.id = s.id \
            WHEN MATCHED THEN UPDATE SET note = 'merged' WHEN NOT MATCHED THEN INSERT (note) VALUES ('new');
            """,
            // A statement that inserts nothing fires triggers, too, so the condition is outside it.
            """
            IF pg_catalog.pg_trigger_depth() < 2 THEN INSERT INTO public.acts (note, n) VALUES ('echo', 1); END IF;
            """,
        ])
        switch chance.number(0..<10) {
        case 0..<3:
            return Misdeed(
                body: statement,
                clause: " SECURITY DEFINER SET session_replication_role = replica",
                fates: [.accepted], writes: true)
        case 3..<5:
            return Misdeed(
                body: """
                    PERFORM pg_catalog.set_config('session_replication_role', 'replica', true); \(statement) \
                    PERFORM pg_catalog.set_config('session_replication_role', 'origin', true);
                    """, clause: " SECURITY DEFINER", fates: [.accepted, .putOff], writes: true)
        default: return Misdeed(body: statement, fates: [.accepted], writes: true)
        }
    }

    /// What only a trigger does that fires before: another row than the statement says, or none.
    private static func changedRow(_ chance: inout Chance) -> Misdeed {
        let deed = chance.one(of: [
            "NEW.note := NEW.note || ' é';", "NEW.n := 77;", "NEW.at := 'infinity';",
            "NEW.data := '\\x00';", "NEW.tags := ARRAY[NULL, 'a'];",
            "NEW.id := NEW.id + 1000;", "NEW.id := NEW.id + 1000;", "NEW.id := NEW.id + 1000;",
            "IF TG_OP = 'UPDATE' THEN NEW.id := NEW.id + 1000; END IF;",
            "IF TG_OP = 'UPDATE' THEN NEW.id := NEW.id + coalesce(NEW.n, 7); END IF;",
            "NEW.id := -5;",
            "NEW.amount := NULL;",
            "RETURN NULL;",
        ])
        let body = deed.contains("NEW") ? "IF TG_OP <> 'DELETE' THEN \(deed) END IF;" : deed
        return Misdeed(
            body: body, fates: [.accepted, .putOff, .refused], isBefore: true, writes: true)
    }

    /// Commands that no trigger should run, or none needs.
    private static let commands: [Misdeed] =
        [
            "EXECUTE 'DEALLOCATE ALL';", "EXECUTE 'DISCARD ALL';", "EXECUTE 'DISCARD PLANS';",
            "EXECUTE 'DISCARD TEMPORARY';", "COMMIT;", "ROLLBACK;", "EXECUTE 'EXECUTE nothing';",
            "EXECUTE 'LISTEN martlet';", "PERFORM pg_catalog.pg_notify('martlet', 'x');",
            "EXECUTE 'CREATE TEMPORARY TABLE IF NOT EXISTS scrap (id integer)';",
            "SET CONSTRAINTS ALL IMMEDIATE;", "SET CONSTRAINTS ALL DEFERRED;",
            "EXECUTE 'SET TRANSACTION READ ONLY';", "EXECUTE 'PREPARE p AS SELECT 1';",
            "LOCK TABLE public.calm IN ACCESS EXCLUSIVE MODE;",
            "PERFORM pg_catalog.pg_advisory_lock(7);", "RAISE WARNING 'é ☃';",
            "RAISE NOTICE '%', pg_catalog.repeat('é', 200000);",
            "PERFORM pg_catalog.lo_create(0);",
            "PERFORM count(*) FROM public.secrets;", "PERFORM 1 / 0;",
            "PERFORM 'x'::text::integer;", "EXECUTE 'DECLARE c CURSOR WITH HOLD FOR SELECT 1';",
        ].map {
            Misdeed(
                body: $0,
                fates: $0.contains("1 / 0") || $0.contains("::integer")
                    ? [.refused] : [.accepted, .putOff])
        }

    /// What is found at the end of the transaction, or of the set.
    private static func late(_ chance: inout Chance) -> Misdeed {
        chance.percent(60)
            ? Misdeed(body: "INSERT INTO public.audit VALUES (TG_OP);", fates: [.refused])
            : Misdeed(
                body: "PERFORM pg_catalog.nextval('public.short_sequence');",
                fates: [.accepted, .refused])
    }

    /// What an operator puts on Martlet's own tables, and is judged outside all sets.
    private static func ofLog(_ chance: inout Chance) -> Misdeed {
        Misdeed(
            body: chance.one(of: [
                "RAISE EXCEPTION 'not now';", "RAISE EXCEPTION 'x' USING ERRCODE = '23514';",
                "INSERT INTO public.audit VALUES (TG_OP);",
            ]), fates: [.putOff], isOnLog: true)
    }

    private static func end(_ chance: inout Chance) -> Misdeed {
        let isForGood = chance.percent(70)
        let deed = isForGood ? "pg_terminate_backend" : "pg_cancel_backend"
        return Misdeed(
            body: """
                PERFORM pg_catalog.\(deed)(pg_catalog.pg_backend_pid()), pg_catalog.pg_sleep(10);
                """, fates: [.putOff], isCostly: isForGood)
    }

    private static let slow = Misdeed(
        body: "PERFORM pg_catalog.pg_sleep(3600);", fates: [.putOff], isCostly: true)
}

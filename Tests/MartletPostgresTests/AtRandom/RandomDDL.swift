import PostgresKit

/// Changes that other programs make to tables, and triggers that they give them.
struct RandomDDL {
    let tables: [LiveTable]
    let keys: [UInt32: String]
    /// For new names.
    let number: Int

    // MARK: - ALTER TABLE

    /// A change of one table's columns or constraints, or of names. It may fail.
    func change(_ chance: inout Chance) -> String {
        guard let table = tables.randomElement(using: &chance) else { return "SELECT 1" }
        switch chance.number(0..<20) {
        case 0..<12:
            let actions = (0..<chance.one(of: [1, 1, 2])).map { _ in action(table, &chance) }
            return "ALTER TABLE \(table.sql) \(actions.joined(separator: ", "))"
        case 12: return rename(table, &chance)
        case 13: return "ALTER TABLE \(table.sql) RENAME TO \"t \(number)\""
        case 14:
            guard let other = tables.randomElement(using: &chance), other.oid != table.oid else {
                return "ANALYZE \(table.sql)"
            }
            return """
                ALTER TABLE \(table.sql) RENAME TO martlet; \
                ALTER TABLE \(other.sql) RENAME TO \(PostgresConnection.quoted(table.name)); \
                ALTER TABLE martlet RENAME TO \(PostgresConnection.quoted(other.name))
                """
        case 15: return "CREATE UNIQUE INDEX ON \(table.sql) (\(column(table, &chance)))"
        case 16: return "CREATE INDEX ON \(table.sql) (\(column(table, &chance)))"
        case 17:
            return """
                DO $$ DECLARE k record; BEGIN FOR k IN SELECT conname FROM pg_constraint \
                WHERE conrelid = \(table.oid) AND contype IN ('f', 'u', 'c') ORDER BY conname LIMIT 1 LOOP \
                EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', \(table.oid)::regclass, k.conname); \
                END LOOP; END $$
                """
        case 18:
            return
                "ALTER TABLE \(table.sql) REPLICA IDENTITY \(chance.one(of: ["FULL", "DEFAULT"]))"
        default: return "ALTER TYPE mood ADD VALUE 'more \(number)'"
        }
    }

    private func column(_ table: LiveTable, _ chance: inout Chance) -> String {
        chance.one(of: table.columns).quoted
    }

    private func rename(_ table: LiveTable, _ chance: inout Chance) -> String {
        let one = column(table, &chance)
        let other = column(table, &chance)
        let begin = "ALTER TABLE \(table.sql) RENAME COLUMN"
        guard one != other else { return "\(begin) \(one) TO \"c \(number)\"" }
        return "\(begin) \(one) TO x; \(begin) \(other) TO \(one); \(begin) x TO \(other)"
    }

    private func action(_ table: LiveTable, _ chance: inout Chance) -> String {
        let column = column(table, &chance)
        let type = chance.one(of: RandomTables.types)
        let name = "c\(number)\(chance.number(0..<10))"
        switch chance.number(0..<16) {
        case 0: return "ADD COLUMN \(name) \(type)"
        case 1: return "ADD COLUMN \(name) integer NOT NULL DEFAULT \(chance.number(0..<9))"
        case 2: return "ADD COLUMN \(name) text DEFAULT clock_timestamp()::text"
        case 3: return "ADD COLUMN \(name) text GENERATED ALWAYS AS (\(column)::text) STORED"
        case 4:
            let target = chance.one(of: tables)
            guard let key = keys[target.oid] else { return "ADD COLUMN \(name) text" }
            return "ADD COLUMN \(name) \(key) \(RandomTables.reference(to: target.name, &chance))"
        case 5, 6:
            return "DROP COLUMN \(chance.one(of: table.writable.map(\.quoted) + ["nothing"]))"
        case 7: return "ALTER COLUMN \(column) TYPE text USING \(column)::text || 'x'"
        case 8: return "ALTER COLUMN \(column) TYPE \(type) USING NULL"
        case 9: return "ALTER COLUMN \(column) TYPE bigint"
        case 10: return "ALTER COLUMN \(column) TYPE varchar(40)"
        case 11: return "ALTER COLUMN \(column) SET NOT NULL"
        case 12: return "ALTER COLUMN \(column) DROP NOT NULL"
        case 13:
            // A key without values of its own is refused, with a sentence.
            let free = chance.one(of: table.writable.map(\.quoted) + ["nothing"])
            return "ALTER COLUMN \(free) SET DEFAULT NULL"
        case 14: return "ADD CHECK (\(column) IS DISTINCT FROM NULL)"
        default: return "ADD UNIQUE (\(column))"
        }
    }

    // MARK: - Triggers

    /// A trigger and its function, with what it does.
    func trigger(_ chance: inout Chance) -> String {
        guard let table = tables.randomElement(using: &chance) else { return "SELECT 1" }
        let isBefore = chance.percent(45)
        let event = chance.one(of: [
            "INSERT", "UPDATE", "DELETE", "INSERT OR UPDATE", "INSERT OR UPDATE OR DELETE",
        ])
        let isForRows = isBefore || chance.percent(80)
        let last = event.hasSuffix("DELETE") ? "OLD" : "NEW"
        let body = isBefore ? before(table, event, &chance) : after(table, &chance)
        let condition = chance.percent(60) ? "random() < 2" : "mod(length(\(last)::text), 2) = 0"
        let end =
            event.contains("OR DELETE")
            ? "IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW" : "RETURN \(last)"
        let clause = chance.percent(15) ? " SET search_path = pg_catalog, public" : ""
        let deferred = !isBefore && isForRows && chance.percent(25)
        return """
            CREATE FUNCTION f\(number)() RETURNS trigger LANGUAGE plpgsql\(clause) AS $f$ BEGIN \
            IF \(deferred ? Self.fewRounds : "pg_trigger_depth() < 3") AND \(isForRows ? condition.replacing("OLD", with: "coalesce(NEW, OLD)").replacing("NEW::", with: "coalesce(NEW, OLD)::") : "true") THEN \
            \(deferred ? Self.countRound : "")\(body) END IF; \(isForRows ? end : "RETURN NULL"); END $f$; \
            CREATE \(deferred ? "CONSTRAINT " : "")TRIGGER \(chance.one(of: ["a", "z"]))\(number) \
            \(isBefore ? "BEFORE" : "AFTER") \(event) ON \(table.sql) \
            \(deferred ? "DEFERRABLE INITIALLY DEFERRED " : "")FOR EACH \(isForRows ? "ROW" : "STATEMENT") \
            EXECUTE FUNCTION f\(number)()
            """
    }

    /// What a deferred trigger writes fires it at the same depth again, without end.
    private static let rounds =
        "coalesce(nullif(current_setting('app.rounds', true), ''), '0')::integer"
    private static let fewRounds = "\(rounds) < 6"
    private static let countRound =
        "PERFORM set_config('app.rounds', (\(rounds) + 1)::text, true); "

    private func before(_ table: LiveTable, _ event: String, _ chance: inout Chance) -> String {
        if event == "DELETE" { return chance.percent(50) ? "RETURN NULL;" : raise(&chance) }
        let row = "IF TG_OP <> 'DELETE' THEN "
        switch chance.number(0..<10) {
        case 0..<5:
            guard let column = table.writable.randomElement(using: &chance) else { return "NULL;" }
            let value = RandomValue.value(column, keys: keys, &chance).sql
            return "\(row)NEW.\(column.quoted) := \(value); END IF;"
        case 5, 6: return "\(row)\(otherKey(table, &chance)) END IF;"
        case 7: return "RETURN NULL;"
        default: return raise(&chance)
        }
    }

    /// Gives the row another key: always the same, one that follows from its key, or that of a value.
    private func otherKey(_ table: LiveTable, _ chance: inout Chance) -> String {
        guard let key = table.key else { return "NULL;" }
        let name = key.quoted
        let isNumber = key.type.hasPrefix("int")
        switch chance.number(0..<4) {
        case 0: return "NEW.\(name) := \(RandomValue.key(key.type, &chance).sql);"
        case 1 where isNumber: return "NEW.\(name) := \(chance.number(10..<20)) - NEW.\(name);"
        case 2 where key.type == "uuid":
            return "NEW.\(name) := overlay(NEW.\(name)::text PLACING '2' FROM 35)::uuid;"
        default:
            return isNumber
                ? "NEW.\(name) := NEW.\(name) + \(chance.number(1..<30));"
                : key.type == "uuid"
                    ? "NEW.\(name) := gen_random_uuid();"
                    : "NEW.\(name) := left('k' || NEW.\(name), 20);"
        }
    }

    private func after(_ table: LiveTable, _ chance: inout Chance) -> String {
        if chance.percent(20) { return raise(&chance) }
        if chance.percent(15) { return setting(&chance) }
        let sql = RandomSQL(tables).statement(&chance, isPlain: true)
        return chance.percent(40)
            ? "BEGIN \(sql); EXCEPTION WHEN OTHERS THEN NULL; END;" : "\(sql);"
    }

    private static let codes = [
        "P0001", "23514", "23505", "22023", "40001", "40P01", "55P03", "55006", "0A000", "54000",
        "54001",
        "57014", "42501", "42P01", "53100", "XX000", "40000", "40002", "40003", "F0000", "72000",
        "0B000",
        "21000", "38000", "26000",
    ]

    private func raise(_ chance: inout Chance) -> String {
        let words = chance.percent(10) ? "cached plan must not change result type" : "not now"
        return "RAISE EXCEPTION '\(words)' USING ERRCODE = '\(chance.one(of: Self.codes))';"
    }

    private func setting(_ chance: inout Chance) -> String {
        let (name, value) = chance.one(of: [
            ("search_path", "pg_catalog"), ("TimeZone", "Asia/Tokyo"), ("DateStyle", "German"),
            ("martlet.applying", "off"), ("martlet.author", "somebody"),
            ("extra_float_digits", "-5"),
            ("bytea_output", "escape"), ("lock_timeout", "1"), ("statement_timeout", "9000"),
            ("session_replication_role", "replica"), ("client_encoding", "LATIN1"),
            ("role", "none"),
        ])
        return "PERFORM set_config('\(name)', '\(value)', \(chance.percent(50)));"
    }
}

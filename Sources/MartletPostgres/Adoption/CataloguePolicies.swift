import PostgresKit

/// The row-level security and the privileges of tables, as the catalogue has them. Names are quoted
/// as SQL needs them.
struct CataloguePolicies {
    struct Policy {
        let table: UInt32
        let name: String
        let isPermissive: Bool
        /// `pg_policy.polcmd`: r, a, w, d, or * for all.
        let command: String
        /// The roles; empty for PUBLIC.
        let roles: [String]
        /// The conditions behind USING and WITH CHECK.
        let conditions: [(clause: String, text: String)]
        /// The relations that it reads and that are not synchronised.
        let outside: [String]
    }

    struct Grant {
        let table: UInt32
        /// The role; nil for PUBLIC.
        let grantee: Int64?
        /// The role and the roles of groups that inherit from it; empty for PUBLIC.
        let roles: [String]
        /// SELECT, INSERT, UPDATE or DELETE.
        let command: String
        /// The column, as it is and as SQL names it; nil for all.
        let column: (name: String, sql: String)?
        /// The roles among these that may not use the table's schema; PUBLIC if not everyone may.
        let barred: [String]
    }

    /// A role that the policies or the privileges name, and that PostgreSQL lets see more.
    struct Exemption {
        let role: String
        /// Why, such as “owns crm.notes”.
        let reason: String
    }

    private(set) var policies: [Policy] = []
    private(set) var grants: [Grant] = []
    private(set) var exemptions: [Exemption] = []
    /// The enumerations of the database, as SQL names them.
    private(set) var enumerations: Set<String> = []

    /// Reads the policies and privileges of tables. Types and tables of the search path are named
    /// without their schemas.
    init(of tables: [UInt32], on connection: PostgresConnection) throws(PostgresError) {
        let oids = PostgresValue.array(PostgresArray(tables.map { .integer(Int64($0)) }))
        let rows = try connection.query(Self.policyQuery, [oids])
        for row in 0..<rows.count {
            var conditions: [(String, String)] = []
            for (clause, column) in [("USING", 5), ("WITH CHECK", 6)]
            where !rows.isNull(row, column) {
                conditions.append((clause, try rows.text(row, column)))
            }
            policies.append(
                Policy(
                    table: UInt32(try rows.integer(row, 0)), name: try rows.text(row, 1),
                    isPermissive: try rows.boolean(row, 2), command: try rows.text(row, 3),
                    roles: try rows.texts(row, 4), conditions: conditions,
                    outside: try rows.texts(row, 7)))
        }
        let acl = try connection.query(Self.grantQuery, [oids])
        for row in 0..<acl.count {
            let grantee = try acl.integer(row, 1)
            grants.append(
                Grant(
                    table: UInt32(try acl.integer(row, 0)), grantee: grantee == 0 ? nil : grantee,
                    roles: try acl.texts(row, 2), command: try acl.text(row, 3),
                    column: acl.isNull(row, 4) ? nil : (try acl.text(row, 4), try acl.text(row, 5)),
                    barred: try acl.texts(row, 6)))
        }
        var roles = Set(policies.flatMap(\.roles))
        roles.formUnion(grants.flatMap(\.roles))
        let named = PostgresValue.array(PostgresArray(roles.sorted().map { .text($0) }))
        let exempt = try connection.query(Self.exemptionQuery, [oids, named])
        for row in 0..<exempt.count {
            exemptions.append(
                Exemption(role: try exempt.text(row, 0), reason: try exempt.text(row, 1)))
        }
        let types = try connection.query(
            "SELECT pg_catalog.format_type(oid, NULL) FROM pg_catalog.pg_type WHERE typtype = 'e'")
        for row in 0..<types.count { enumerations.insert(try types.text(row, 0)) }
    }

    /// Returns SQL for the names of roles and of the groups that inherit from them. Groups are roles
    /// that cannot log in.
    /// - Parameter roles: SQL for an array of oids.
    private static func names(_ roles: String) -> String {
        """
        ARRAY(SELECT pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_roles r
            WHERE r.oid = ANY (\(roles)) OR NOT r.rolcanlogin AND NOT r.rolsuper
            AND r.rolname NOT LIKE 'pg\\_%' AND EXISTS (SELECT FROM unnest(\(roles)) AS g (role)
                WHERE g.role <> 0 AND pg_catalog.pg_has_role(r.oid, g.role, 'USAGE'))
            ORDER BY 1)
        """
    }

    private static let policyQuery = """
        SELECT p.polrelid::bigint, pg_catalog.quote_ident(p.polname), p.polpermissive,
            p.polcmd::text,
            CASE WHEN 0 = ANY (p.polroles) THEN '{}' ELSE \(names("p.polroles")) END,
            pg_catalog.pg_get_expr(p.polqual, p.polrelid),
            pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid),
            ARRAY(SELECT DISTINCT CASE WHEN n.nspname = 'public' THEN '' ELSE n.nspname || '.' END
                    || r.relname
                FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class r ON r.oid = d.refobjid
                JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
                WHERE d.classid = 'pg_catalog.pg_policy'::pg_catalog.regclass AND d.objid = p.oid
                AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                AND d.refobjid <> ALL ($1::oid[]) ORDER BY 1)
        FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
        WHERE p.polrelid = ANY ($1::oid[]) AND c.relrowsecurity ORDER BY p.polrelid, p.polname
        """

    // An owner without FORCE bypasses the policies, so that its privileges say nothing of people.
    private static let grantQuery = """
        SELECT c.oid::bigint, x.grantee::bigint,
            CASE WHEN x.grantee = 0 THEN '{}' ELSE \(names("ARRAY[x.grantee]")) END,
            x.privilege_type, x.name::text, pg_catalog.quote_ident(x.name),
            CASE WHEN x.grantee <> 0 THEN ARRAY(
                SELECT pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_roles r
                WHERE pg_catalog.quote_ident(r.rolname) = ANY (\(names("ARRAY[x.grantee]")))
                AND NOT pg_catalog.has_schema_privilege(r.oid, c.relnamespace, 'USAGE') ORDER BY 1)
            WHEN NOT pg_catalog.has_schema_privilege('public', c.relnamespace, 'USAGE')
            THEN ARRAY['PUBLIC'] ELSE '{}' END
        FROM pg_catalog.pg_class c CROSS JOIN LATERAL (
            SELECT NULL::name, a.grantee, a.privilege_type FROM pg_catalog.aclexplode(
                coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner))) a
            UNION ALL
            SELECT t.attname, a.grantee, a.privilege_type FROM pg_catalog.pg_attribute t
            CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) a
            WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped
        ) AS x (name, grantee, privilege_type)
        WHERE c.oid = ANY ($1::oid[])
        AND x.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        AND (x.grantee <> c.relowner OR (c.relforcerowsecurity OR NOT c.relrowsecurity)
            AND NOT (SELECT o.rolsuper FROM pg_catalog.pg_roles o WHERE o.oid = c.relowner))
        ORDER BY c.oid, x.grantee, x.name NULLS FIRST, x.privilege_type
        """
}

extension CataloguePolicies {
    /// Finds roles that bypass the policies of tables, or have privileges that no GRANT gives.
    fileprivate static let exemptionQuery = """
        SELECT pg_catalog.quote_ident(r.rolname), x.reason FROM pg_catalog.pg_roles r
        CROSS JOIN LATERAL (
            SELECT 'is a superuser' WHERE r.rolsuper
            UNION ALL SELECT 'has BYPASSRLS' WHERE r.rolbypassrls AND NOT r.rolsuper
            UNION ALL SELECT 'is a member of pg_read_all_data' WHERE NOT r.rolsuper
                AND pg_catalog.pg_has_role(r.oid, 'pg_read_all_data', 'USAGE')
            UNION ALL SELECT 'is a member of pg_write_all_data' WHERE NOT r.rolsuper
                AND pg_catalog.pg_has_role(r.oid, 'pg_write_all_data', 'USAGE')
            UNION ALL SELECT 'acts as the owner of ' || pg_catalog.format('%I.%I', n.nspname, c.relname)
            FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = ANY ($1::oid[]) AND c.relrowsecurity AND NOT c.relforcerowsecurity
            AND NOT r.rolsuper AND pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE')
        ) AS x (reason)
        WHERE pg_catalog.quote_ident(r.rolname) = ANY ($2::text[]) ORDER BY 1, 2
        """
}

extension PostgresRows {
    /// Returns the texts of an array.
    func texts(_ row: Int, _ column: Int) throws(PostgresError) -> [String] {
        guard case .array(let array) = try value(row, column) else { return [] }
        return array.elements.compactMap(\.text)
    }
}

import MartletModel
import MartletRules
import Testing

@Suite("The rules that concern somebody")
struct ExcerptTests {
    private static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "owner", kind: .text)]),
        EntityType(
            name: "odd \"name\"", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "note", kind: .text)]),
    ])

    private static let rules = """
        -- The office is guarded by this.
        CREATE POLICY own ON teams USING (owner = martlet_user() /* hers */ OR martlet_role('guest'));
        CREATE POLICY office ON teams TO office, boss USING (owner <> martlet_claim('secret'));
        CREATE POLICY coach ON teams AS RESTRICTIVE TO office, coach, boss USING (owner <> martlet_claim('club'));
        ALTER TABLE "odd ""name\""" DISABLE ROW LEVEL SECURITY;
        GRANT SELECT ON "odd ""name\""" TO office;
        """

    private static func excerpt(_ viewer: Viewer) throws -> RulesProgram.Excerpt {
        try RulesProgram(rules, schema: schema).excerpt(for: viewer)
    }

    @Test("have the statements of his roles and for everyone, and nothing of others")
    func statements() throws {
        let viewer = Viewer(
            user: "ann", roles: ["coach", "unknown"], claims: ["club": "7", "secret": "s"])
        let excerpt = try Self.excerpt(viewer)
        #expect(
            excerpt.text == """
                REVOKE ALL ON "odd ""name\""" FROM PUBLIC;
                CREATE POLICY own ON teams USING ( owner = martlet_user ( ) OR false );
                CREATE POLICY coach ON teams AS RESTRICTIVE TO "coach" USING ( owner <> martlet_claim ( 'club' ) );
                ALTER TABLE "odd ""name\""" DISABLE ROW LEVEL SECURITY;
                """)
        #expect(
            excerpt.viewer == Viewer(user: "ann", roles: ["coach"], claims: ["club": "7"]))
        let read = try RulesProgram(excerpt.text, schema: Self.schema)
        #expect(!read.mayUse(.select, of: 1, roles: ["coach"]))
        #expect(read.mayUse(.select, of: 0, roles: ["coach"]))
    }

    @Test("roles and claims are equal if their bytes are")
    func exactNames() throws {
        let (one, other) = ("rol\u{E9}", "role\u{301}")
        let program = try RulesProgram(
            """
            CREATE POLICY a ON teams TO "\(one)" USING (true);
            CREATE POLICY b ON teams USING (martlet_role('\(one)') OR martlet_claim('\(one)') = 'x');
            GRANT SELECT ON teams TO "\(one)";
            """, schema: Self.schema)
        for (name, isSame) in [(one, true), (other, false)] {
            let viewer = Viewer(roles: [name], claims: [name: "x"])
            #expect(program.mayUse(.select, of: 0, roles: viewer.roles) == isSame)
            #expect((program.extent(of: 0, for: viewer) == .whole) == isSame)
            let excerpt = program.excerpt(for: viewer)
            #expect(excerpt.text.contains("CREATE POLICY a") == isSame)
            #expect(excerpt.text.contains("( false OR") == !isSame)
            #expect(excerpt.viewer.roles.isEmpty != isSame)
            #expect(excerpt.viewer.claims.isEmpty != isSame)
        }
        #expect(Viewer(roles: [one, other]).roles.count == 2)
    }

    @Test("UUIDs are in PostgreSQL's form, because a device has texts")
    func uuids() throws {
        let schema = Schema(types: [
            EntityType(
                name: "teams", key: "id", keyKind: .text,
                attributes: [Attribute(name: "name", kind: .text)],
                keyMeaning: .uuid(isCanonical: true))
        ])
        let upper = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
        let excerpt = try RulesProgram(
            "CREATE POLICY p ON teams USING (id IN ('\(upper)') AND name <> '\(upper)')",
            schema: schema
        ).excerpt(for: Viewer())
        #expect(
            excerpt.text
                == "CREATE POLICY p ON teams USING ( id IN ( '\(upper.lowercased())' ) AND name <> '\(upper)' );"
        )
    }

    @Test("are the same for people for whom they ask the same")
    func equal() throws {
        let one = try Self.excerpt(Viewer(user: "ann", roles: ["x"], claims: ["iat": "1"]))
        let other = try Self.excerpt(Viewer(user: "ann", roles: ["y"], claims: ["iat": "2"]))
        #expect(one == other)
        #expect(try one != Self.excerpt(Viewer(user: "bob")))
        #expect(try one != Self.excerpt(Viewer(user: "ann", roles: ["guest"])))
    }
}

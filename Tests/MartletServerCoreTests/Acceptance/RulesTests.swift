import MartletModel
import MartletServerCore
import Testing

@Suite("Rules by role")
struct RulesTests {
    private func principal(_ roles: String...) -> Principal {
        Principal(name: "p", roles: roles)
    }

    private let rules = Rules(
        roles: [
            "coach": Rules.Grant(types: ["teams": .update], others: []),
            "scribe": Rules.Grant(types: ["notes": [.create, .delete]], others: .create),
        ],
        fallback: Rules.Grant(types: ["teams": []], others: .update))

    @Test("a role grants by type, and for the rest what it says of others")
    func grants() {
        #expect(rules.operations(of: principal("coach"), on: "teams") == .update)
        #expect(rules.operations(of: principal("coach"), on: "notes") == [])
        #expect(rules.operations(of: principal("scribe"), on: "teams") == .create)
    }

    @Test("roles add up; unknown ones add nothing")
    func union() {
        let both = principal("coach", "scribe", "ghost")
        #expect(rules.operations(of: both, on: "teams") == [.update, .create])
        #expect(rules.operations(of: both, on: "notes") == [.create, .delete])
    }

    @Test("who has no listed role falls back")
    func fallback() {
        #expect(rules.operations(of: principal("ghost"), on: "teams") == [])
        #expect(rules.operations(of: principal(), on: "notes") == .update)
        #expect(Rules.everything.operations(of: principal(), on: "x") == .all)
    }

    @Test("a user keeps the identity when the token is renewed")
    func identity() {
        #expect(
            Principal(name: "a", user: "ada").identity == Principal(name: "b", user: "ada").identity
        )
        #expect(Principal(name: "a").identity != Principal(name: "b").identity)
        #expect(Principal(name: "ada").identity != Principal(name: "x", user: "ada").identity)
    }
}

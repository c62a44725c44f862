import MartletModel
import MartletProtocol
import MartletRules
import OpenSSLKit

extension UserRules {
    /// Makes the rules that concern a principal, by policies.
    init(_ program: RulesProgram, of principal: Principal) {
        let excerpt = program.excerpt(
            for: Viewer(
                user: principal.user, roles: Set(principal.roles), claims: principal.claims))
        self.init(
            naming: excerpt.text, user: excerpt.viewer.user, roles: excerpt.viewer.roles.sorted(),
            claims: excerpt.viewer.claims)
    }

    /// Makes the rules that concern a principal, by the rights of roles to types.
    init(_ rules: Rules, of principal: Principal, _ schema: Schema) {
        let words: [(Operations, String)] = [
            (.create, "INSERT"), (.update, "UPDATE"), (.delete, "DELETE"),
        ]
        let lines = schema.types.map { type in
            let allowed = rules.operations(of: principal, on: type.name)
            let privileges = ["SELECT"] + words.filter { allowed.contains($0.0) }.map(\.1)
            let name = RulesProgram.quoted(type.name)
            return """
                ALTER TABLE \(name) DISABLE ROW LEVEL SECURITY;
                GRANT \(privileges.joined(separator: ", ")) ON \(name) TO PUBLIC;
                """
        }
        self.init(naming: lines.joined(separator: "\n"))
    }

    /// Makes rules whose fingerprint is the beginning of their SHA-256.
    private init(
        naming text: String, user: String? = nil, roles: [String] = [],
        claims: [String: String] = [:]
    ) {
        self.init(fingerprint: "", text: text, user: user, roles: roles, claims: claims)
        fingerprint = Hexadecimal.text(
            Array(SHA256.digest(SyncCoder.encode(self)).prefix(16)))
    }
}

/// The tokens of a demo's people.
struct DemoAccess: Sendable {
    let roles: DemoRoles?
    /// The token that sees everything.
    let office: String
    private var coaches: [String: String] = [:]

    /// Makes the missing tokens. Without roles there is one for all.
    init(
        _ roles: DemoRoles?, _ folder: DemoFolder, _ backEnd: any DemoBackEnd, program: String
    ) async throws {
        self.roles = roles
        guard let roles else {
            office = folder.token
            return
        }
        func token(_ user: String, role: String) async throws -> String {
            try await folder.token(of: user) {
                try await ServerProcess.run(
                    program,
                    ["token", "create", "demo", "--user", user, "--role", role]
                        + backEnd.dataOptions
                ).filter { !$0.isWhitespace }
            }
        }
        office = try await token(OrganisationRules.office, role: OrganisationRules.office)
        for coach in roles.people { coaches[coach] = try await token(coach, role: "coach") }
    }

    /// Returns the token of a device's user.
    func token(of device: Int) -> String {
        roles?.coach(of: device).flatMap { coaches[$0] } ?? office
    }
}

internal import MartletServerCore

/// The person who uses a simulated device, as the server's token names him.
public struct SimulatedPerson: Hashable, Sendable {
    /// The user; people of several devices may be one user.
    public var user: String
    /// The roles, for policies.
    public var roles: [String]
    /// The claims, for policies.
    public var claims: [String: String]

    /// Creates a person.
    public init(_ user: String, roles: [String] = [], claims: [String: String] = [:]) {
        self.user = user
        self.roles = roles
        self.claims = claims
    }
}

extension Simulator {
    /// Gives the server an app's rules file, and the devices' tokens their people.
    func limit(by rules: String, _ people: [SimulatedPerson]) {
        let all = people.isEmpty ? [SimulatedPerson("staff")] : people
        let principals = devices.map { device in
            let person = all[device.number % all.count]
            return Principal(
                name: "token \(device.number)", user: person.user, roles: person.roles,
                claims: person.claims)
        }
        limit(by: SimulatedRights(rules: rules, people: principals))
    }
}

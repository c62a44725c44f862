/// The roles of a demo's devices: most are of the office, which sees everything, and every fifth is one
/// of a coach, who sees a part.
struct DemoRoles: Sendable {
    /// The number of devices. One that joins later is of the office.
    let devices: Int
    /// The number of coaches.
    let coaches: Int

    private static let between = 5
    private static let first = 3

    /// Returns the name of the coach who uses a device; nil for one of the office.
    func coach(of device: Int) -> String? {
        guard device <= devices, device % Self.between == Self.first else { return nil }
        return OrganisationRules.coach(device / Self.between % coaches + 1)
    }

    /// The names of the coaches who have devices, sorted.
    var people: [String] { Set((1...devices).compactMap { coach(of: $0) }).sorted() }
}

/// Runs the cases whose group is named on the command line, or all.
///
/// Each case prints one line of JSON: its name, unit, median, spread, samples and machine.
@main
enum Benchmarks {
    /// The groups of cases, by name.
    static let groups: [(name: String, run: @Sendable () async throws -> Void)] = [
        ("coder", CoderCases.run)
    ]

    static func main() async throws {
        let wanted = CommandLine.arguments.dropFirst()
        let unknown = wanted.filter { name in !groups.contains { $0.name == name } }
        guard unknown.isEmpty else {
            print("Unknown: \(unknown.joined(separator: ", ")).")
            print("There are: \(groups.map(\.name).joined(separator: ", ")).")
            return
        }
        for group in groups where wanted.isEmpty || wanted.contains(group.name) {
            try await group.run()
        }
    }
}

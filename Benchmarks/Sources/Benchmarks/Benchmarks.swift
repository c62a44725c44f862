import Foundation

/// Runs the cases whose group is named on the command line, or all but those that only repeat others
/// at more points. `NAME=LIST` chooses points.
///
/// Each case prints one line of JSON: its name, unit, median, spread, samples and machine.
@main
enum Benchmarks {
    /// The groups of cases, by name.
    static let groups: [(name: String, run: @Sendable () async throws -> Void)] = [
        ("coder", CoderCases.run), ("server", ServerCases.run), ("sync", SyncCases.run),
        ("snapshot", SnapshotCases.run), ("apply", ApplyCases.run), ("behind", BehindCases.run),
        ("repair", RepairCases.run), ("postgres", PostgresCases.run),
        ("capture", CaptureCases.run), ("store", StoreCases.run), ("fanout", FanoutCases.run),
        ("many", ManyCases.run), ("views", ViewCases.run), ("viewed", ViewDeviceCases.run),
        ("scaling", ScalingCases.run),
    ]
    private static let onlyByName: Set = ["scaling"]

    static func main() async throws {
        let wanted = CommandLine.arguments.dropFirst().filter { !$0.contains("=") }
        if try await isPart(Array(wanted)) { return }
        let unknown = wanted.filter { name in !groups.contains { $0.name == name } }
        guard unknown.isEmpty else {
            print("Unknown: \(unknown.joined(separator: ", ")).")
            print("There are: \(groups.map(\.name).joined(separator: ", ")).")
            return
        }
        for group in groups {
            let isAsked = wanted.isEmpty && !onlyByName.contains(group.name)
            guard isAsked || wanted.contains(group.name) else { continue }
            do {
                try await group.run()
            } catch {
                FileHandle.standardError.write(Data("\(group.name): \(error)\n".utf8))
                exit(1)
            }
        }
    }

    /// Plays a part in another process's benchmark, where the arguments ask for one.
    private static func isPart(_ arguments: [String]) async throws -> Bool {
        switch arguments.first {
        case ServerRole.name where arguments.count == 2:
            try await ServerRole.run(folder: arguments[1])
        case FloorRole.name where arguments.count == 2:
            try FloorRole.run(answerBytes: Int(arguments[1]) ?? 0)
        case ViewRole.name where arguments.count == 2:
            try await ViewRole.run(folder: arguments[1])
        case ManyRole.name where arguments.count >= 2:
            let active = arguments.count > 2 ? Int(arguments[2]) ?? 0 : ManyCases.active
            try await ManyRole.run(folder: arguments[1], active: active)
        default: return false
        }
        return true
    }
}

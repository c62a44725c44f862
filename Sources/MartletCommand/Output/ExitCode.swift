/// The exit status of a command.
enum ExitCode: Int32, CaseIterable {
    case done = 0
    case failed = 1
    case usage = 2
    case conflictsParked = 3
    case unreachable = 4

    var meaning: String {
        switch self {
        case .done: "done"
        case .failed: "failed; the message says why and what to do"
        case .usage:
            "not understood: an unknown option, a missing argument, a fault in a file of tests"
        case .conflictsParked: "done, but refused change sets are parked and wait for a decision"
        case .unreachable: "the server could not be reached; nothing is lost, try again later"
        }
    }
}

/// How a run ended, for scripts.
enum ExitCode: Int32 {
    /// Done.
    case done = 0
    /// Refused: by a rule of the organisation, by the store, by the server.
    case refused = 1
    /// The command line was wrong; nothing was done.
    case usage = 2
    /// Done, and refused change sets wait for a decision.
    case conflicts = 3
    /// The server was asked for and not reached; what was written waits on this device.
    case offline = 4
}

internal import Foundation

/// Names the process that exchanges, so that another one can tell when it has died.
///
/// A lease ends by itself after minutes. A process that was killed in mid-exchange would keep the
/// next one waiting that long; so the name holds the process's number, and a lease whose process is
/// gone ends at once.
enum LeaseOwner {
    /// Different for every life of a process: numbers are used again, in containers at every start.
    private static let life = UInt64.random(in: .min ... .max)

    /// What the names of this process's leases begin with.
    static var prefix: String { "process-\(ProcessInfo.processInfo.processIdentifier)-\(life)-" }

    /// Whether the process that took a lease is certainly gone.
    static func isGone(_ owner: String) -> Bool {
        let parts = owner.split(separator: "-")
        guard parts.count > 3, parts[0] == "process", let number = Int32(parts[1]) else {
            return false
        }
        if number == ProcessInfo.processInfo.processIdentifier { return parts[2] != "\(life)" }
        // Signal 0 only asks (POSIX kill); another user's process answers EPERM, and lives.
        return kill(number, 0) != 0 && errno == ESRCH
    }
}

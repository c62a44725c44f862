internal import Foundation

/// Names the process that exchanges, so that another process can tell if it has died.
///
/// A lease expires only after minutes. If a process were killed during an exchange, the next one
/// would have to wait that long. So the name holds the process's number, and a lease ends at once
/// if its process is gone.
enum LeaseOwner {
    /// A random number for this life of the process, because systems reuse process numbers
    /// (containers do so at every start).
    private static let life = UInt64.random(in: .min ... .max)

    /// The prefix of the names of this process's leases.
    static var prefix: String { "process-\(ProcessInfo.processInfo.processIdentifier)-\(life)-" }

    /// Returns whether the process that took a lease is certainly gone.
    static func isGone(_ owner: String) -> Bool {
        let parts = owner.split(separator: "-")
        guard parts.count > 3, parts[0] == "process", let number = Int32(parts[1]) else {
            return false
        }
        if number == ProcessInfo.processInfo.processIdentifier { return parts[2] != "\(life)" }
        // Signal 0 only checks (POSIX kill). A living process of another user gives EPERM.
        return kill(number, 0) != 0 && errno == ESRCH
    }
}

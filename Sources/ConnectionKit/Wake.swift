#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Ends the wait of a thread that blocks on a socket, from any other thread.
public final class Wake: Sendable {
    /// The two ends of a pipe, which do not change.
    private let reading: Int32
    private let writing: Int32

    /// - Throws: `SocketFailure` if the process cannot open more files.
    public init() throws(SocketFailure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SocketFailure(errno) }
        reading = ends[0]
        writing = ends[1]
        for end in ends {
            _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
    }

    deinit {
        close(reading)
        close(writing)
    }

    /// Ends the present wait; if there is none, the next one.
    public func signal() {
        var byte: UInt8 = 1
        // If the pipe is full, the wait ends all the same.
        _ = write(writing, &byte, 1)
    }

    /// Forgets signals that have ended no wait.
    public func clear() {
        var bytes: [UInt8] = Array(repeating: 0, count: 64)
        while read(reading, &bytes, bytes.count) > 0 {}
    }

    /// The reasons for which a wait ended.
    public struct Outcome: OptionSet, Sendable {
        public let rawValue: Int
        /// There are bytes to read, or the other side has closed the connection.
        public static let readable = Outcome(rawValue: 1)
        /// Bytes can be written.
        public static let writable = Outcome(rawValue: 2)
        /// `signal` was called.
        public static let woken = Outcome(rawValue: 4)

        public init(rawValue: Int) {
            self.rawValue = rawValue
        }
    }

    /// Blocks until a socket is ready, `signal` is called, or a moment has passed.
    /// - Parameters:
    ///   - deadline: The moment; nil to wait for ever.
    ///   - heedsSignals: True if `signal` ends this wait too.
    /// - Returns: The reasons; empty if the moment has passed.
    public func wait(
        _ socket: Int32, reading reads: Bool, writing writes: Bool, until deadline: Deadline?,
        heedsSignals: Bool = true
    ) throws(SocketFailure) -> Outcome {
        let events = (reads ? Int16(POLLIN) : 0) | (writes ? Int16(POLLOUT) : 0)
        while true {
            var watched = [
                pollfd(fd: socket, events: events, revents: 0),
                pollfd(fd: heedsSignals ? reading : -1, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&watched, 2, deadline?.milliseconds ?? -1)
            if count < 0 {
                if errno == EINTR { continue }
                throw SocketFailure(errno)
            }
            var outcome: Outcome = []
            let happened = watched[0].revents
            let ended = Int16(POLLHUP | POLLERR | POLLNVAL)
            if happened & (Int16(POLLIN) | ended) != 0 { outcome.insert(.readable) }
            if happened & (Int16(POLLOUT) | ended) != 0 { outcome.insert(.writable) }
            if watched[1].revents != 0 { outcome.insert(.woken) }
            return outcome
        }
    }
}

/// An error of the system while it waited on a socket.
public struct SocketFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system's `errno`.
    public let code: Int32

    init(_ code: Int32) {
        self.code = code
    }

    public var description: String {
        "waiting on a socket failed: \(String(cString: strerror(code)))"
    }
}

package import Foundation
internal import Synchronization
internal import SystemKit

#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// A program of this package, running; ended at the latest when this is released.
package final class RunningProgram: Sendable {
    /// The lines of its standard output; the stream ends when the program has.
    package let lines: AsyncStream<String>
    private let input = Pipe()
    // Foundation's Process may be used from any thread, one at a time.
    private let process: Mutex<Process>
    private let ended: AsyncStream<Int32>

    /// A program built beside the tests, or the one an environment variable names.
    package static func path(_ name: String, override: String) -> URL {
        if let given = ProcessInfo.processInfo.environment[override] {
            return URL(fileURLWithPath: given)
        }
        return URL(fileURLWithPath: CommandLine.arguments[0])
            .resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
    }

    /// - Parameters:
    ///   - environment: Variables in addition to those of this process.
    ///   - log: Receives the program's standard error, after its present content.
    package init(
        _ program: URL, _ arguments: [String], environment: [String: String] = [:], log: URL
    ) throws {
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = input
        process.standardOutput = output
        if !FileManager.default.fileExists(atPath: log.path) {
            try Data().write(to: log)
        }
        let errors = try FileHandle(forWritingTo: log)
        try errors.seekToEnd()
        process.standardError = errors
        let (ended, end) = AsyncStream<Int32>.makeStream()
        process.terminationHandler = {
            end.yield($0.terminationStatus)
            end.finish()
        }
        self.ended = ended
        try process.run()
        lines = output.fileHandleForReading.incomingLines()
        self.process = Mutex(process)
    }

    deinit {
        kill()
    }

    /// The process's identifier.
    package var identifier: Int32 { process.withLock(\.processIdentifier) }

    /// SIGKILL: no handler runs, nothing is finished.
    package func kill() {
        process.withLock { process in
            guard process.isRunning else { return }
            #if canImport(Glibc)
                Glibc.kill(process.processIdentifier, SIGKILL)
            #else
                Darwin.kill(process.processIdentifier, SIGKILL)
            #endif
        }
    }

    /// SIGTERM: asks it to end in good order.
    package func terminate() {
        process.withLock { if $0.isRunning { $0.terminate() } }
    }

    /// Ends its standard input.
    package func closeInput() {
        try? input.fileHandleForWriting.close()
    }

    /// Waits for its end.
    /// - Returns: The exit status, or the signal that ended it.
    package func end() async -> Int32 {
        for await status in ended { return status }
        return -1
    }
}

internal import Dispatch
internal import Foundation
internal import Synchronization

/// Writes the log's lines in order on a queue of its own. Callers do not wait for the reader of the
/// log.
///
/// If a line cannot be written, because the disk is full or the reader is gone, it is lost. If
/// lines arrive faster than they are read, the newest are lost. The next line that gets through
/// follows a line that says how many are missing.
final class LogOutput: Sendable {
    private struct State {
        var waiting: [String] = []
        var waitingBytes = 0
        var lost = 0
        var isWriting = false
    }

    /// The most bytes of memory that waiting lines may take.
    private static let mostBytes = 1 << 20

    private let queue = DispatchQueue(label: "martlet.log")
    private let state = Mutex(State())
    private let mostBytes: Int
    private let write: @Sendable ([UInt8]) throws -> Void

    /// Makes an output that calls `write` on a serial queue.
    ///
    /// - Parameter write: Writes bytes, and may block.
    init(
        mostBytes: Int = LogOutput.mostBytes, write: @escaping @Sendable ([UInt8]) throws -> Void
    ) {
        self.mostBytes = mostBytes
        self.write = write
    }

    /// Makes an output to a file. If a write fails, the line is lost, and nothing else happens.
    convenience init(to file: FileHandle) {
        self.init { try file.write(contentsOf: Data($0)) }
    }

    /// The number of lines lost since the last one that got through.
    var lostCount: Int { state.withLock { $0.lost } }

    /// Adds a line, given without its line end.
    func add(_ line: String) {
        let isIdle = state.withLock { state in
            let count = line.utf8.count + 1
            guard state.waitingBytes + count <= mostBytes else {
                state.lost += 1
                return false
            }
            state.waiting.append(line)
            state.waitingBytes += count
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if isIdle { queue.async { self.run() } }
    }

    private func run() {
        while let lines = next() {
            for line in lines { put(line) }
        }
    }

    /// Returns the waiting lines, or nil if there are none and the queue becomes idle.
    private func next() -> [String]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isWriting = false
                return nil
            }
            defer {
                state.waiting = []
                state.waitingBytes = 0
            }
            return state.waiting
        }
    }

    private func put(_ line: String) {
        let lost = state.withLock { state in
            defer { state.lost = 0 }
            return state.lost
        }
        do {
            if lost > 0 {
                try write([UInt8]((ServerLog.lineOfLoss(lost) + "\n").utf8))
            }
            try write([UInt8]((line + "\n").utf8))
        } catch {
            state.withLock { $0.lost += lost + 1 }
        }
    }
}

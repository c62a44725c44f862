import Foundation
import Synchronization

/// A progress bar on a terminal; elsewhere, a line at intervals.
final class ProgressBar: Sendable {
    private struct State {
        var drawn = Date.distantPast
        var length = 0
    }

    private let console: Console
    private let title: String
    private let state = Mutex(State())

    init(_ title: String, console: Console) {
        self.title = title
        self.console = console
    }

    /// Shows the progress. It draws at most ten times a second; without a terminal, it writes at
    /// most one line in five seconds.
    func show(done: Int, of total: Int, detail: String = "") {
        let now = Date()
        state.withLock { state in
            let pause = console.isInteractive ? 0.1 : 5
            guard done == total || now.timeIntervalSince(state.drawn) >= pause else { return }
            state.drawn = now
            let line = Self.line(title, done: done, of: total, detail: detail)
            guard console.isInteractive else {
                console.note(line)
                return
            }
            let blanks = String(repeating: " ", count: max(0, state.length - line.count))
            state.length = line.count
            console.draw("\r\(line)\(blanks)")
        }
    }

    /// Ends the line, so that the next text is below it.
    func finish() {
        state.withLock { state in
            if console.isInteractive, state.length > 0 { console.draw("\n") }
            state.length = 0
        }
    }

    static func line(_ title: String, done: Int, of total: Int, detail: String) -> String {
        let width = 24
        let share = total == 0 ? 1 : min(1, Double(done) / Double(total))
        let full = Int(share * Double(width))
        let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
        let percent = Int(share * 100)
        return
            "\(title) \(bar) \(percent) %  \(done)/\(total)\(detail.isEmpty ? "" : "  ")\(detail)"
    }
}

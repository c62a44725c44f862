import Foundation

/// The output of a command: results go to standard output, and everything else to standard error.
struct Console: Sendable {
    /// Whether standard error is a terminal, so that a line can be overwritten.
    let isInteractive: Bool
    private let out: @Sendable (String) -> Void
    private let err: @Sendable (String) -> Void

    init(
        isInteractive: Bool, out: @escaping @Sendable (String) -> Void,
        err: @escaping @Sendable (String) -> Void
    ) {
        self.isInteractive = isInteractive
        self.out = out
        self.err = err
    }

    /// The console of the process.
    static let standard = Console(
        isInteractive: isatty(FileHandle.standardError.fileDescriptor) == 1,
        out: { try? FileHandle.standardOutput.write(contentsOf: Data($0.utf8)) },
        err: { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) })

    /// Writes a line of the result.
    func print(_ line: String) {
        out(line + "\n")
    }

    /// Writes text of the result without adding a line end.
    func write(_ text: String) {
        out(text)
    }

    /// Writes a line for the person at the terminal.
    func note(_ line: String) {
        err(line + "\n")
    }

    /// Writes text for the person at the terminal without adding a line end.
    func draw(_ text: String) {
        err(text)
    }
}

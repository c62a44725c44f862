import Foundation

/// Where a command writes: results to standard output, everything else to standard error.
struct Console: Sendable {
    /// Whether standard error is a terminal, so that a line may be drawn over.
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

    /// The process's own.
    static let standard = Console(
        isInteractive: isatty(FileHandle.standardError.fileDescriptor) == 1,
        out: { try? FileHandle.standardOutput.write(contentsOf: Data($0.utf8)) },
        err: { try? FileHandle.standardError.write(contentsOf: Data($0.utf8)) })

    /// A line of the result.
    func print(_ line: String) {
        out(line + "\n")
    }

    /// Text of the result as it is.
    func write(_ text: String) {
        out(text)
    }

    /// A line for the person at the terminal.
    func note(_ line: String) {
        err(line + "\n")
    }

    /// Text for the person at the terminal as it is.
    func draw(_ text: String) {
        err(text)
    }
}

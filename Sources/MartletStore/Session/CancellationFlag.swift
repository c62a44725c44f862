internal import SQLiteKit
internal import Synchronization

/// A flag that stops work. The canceller sets it, and the connection that runs the work reads it.
package final class CancellationFlag: Sendable {
    private let flag = Atomic<Bool>(false)

    package init() {}

    package func set() {
        flag.store(true, ordering: .releasing)
    }

    package var isSet: Bool { flag.load(ordering: .acquiring) }

    /// Checks the flag.
    /// - Throws: `StoreError` `.cancelled` after the flag was set.
    package func check() throws {
        guard !isSet else { throw Self.cancelled }
    }

    static var cancelled: StoreError {
        StoreError(
            .cancelled,
            "The task was cancelled, so its work was stopped; run it again if it is wanted.")
    }
}

extension Session {
    /// Runs `body`. If the flag is set meanwhile, the running statement ends with an error.
    package func stopping<Result>(
        by sign: CancellationFlag, _ body: () throws -> Result
    ) throws -> Result {
        connection.stopStatements { sign.isSet }
        defer { connection.stopStatements(when: nil) }
        return try body()
    }
}

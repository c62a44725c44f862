/// What a test waited for did not come about in time.
package struct WaitedTooLong: Error, CustomStringConvertible {
    /// What was waited for, and how long.
    package let description: String
}

/// How long a test waits for what must come: long against any machine's pace, so that it matters
/// only where the test fails.
package let patience = Duration.seconds(120)

/// Waits until a condition holds, and lets others work between two looks at it.
/// - Parameters:
///   - what: What is waited for, as the end of “waited in vain until …”.
///   - limit: How long at most.
/// - Throws: `WaitedTooLong` when the time is over; `CancellationError` where the test is cancelled,
///   as it is at its time limit; what the condition throws.
package nonisolated(nonsending) func waitUntil(
    _ what: String, within limit: Duration = patience,
    _ condition: nonisolated(nonsending) () async throws -> Bool
) async throws {
    guard try await !holds(within: limit, condition) else { return }
    try Task.checkCancellation()
    throw WaitedTooLong(description: "For \(limit) waited in vain until \(what).")
}

/// Whether a condition holds, now or within a time; it is looked at again and again, and others
/// work in between. The time is not over before twenty looks: if other tests have kept every
/// thread, what must come had no turn either.
/// - Returns: False when the time is over, or the test was cancelled.
package nonisolated(nonsending) func holds(
    within limit: Duration = patience,
    _ condition: nonisolated(nonsending) () async throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    var looks = 0
    while try await !condition() {
        looks += 1
        let isOver = ContinuousClock.now >= end && looks >= 20
        guard !isOver, (try? await Task.sleep(for: .milliseconds(5))) != nil else { return false }
    }
    return true
}

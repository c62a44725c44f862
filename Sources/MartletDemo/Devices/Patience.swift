/// Waiting with a time limit.
enum Patience {
    /// Checks at intervals until `condition` holds.
    /// - Throws: `DemoError` with the message if it does not hold in time; the error of
    ///   `condition`.
    static func wait(
        _ limit: Duration, _ message: String, _ condition: () async throws -> Bool
    ) async throws {
        let end = ContinuousClock.now + limit
        while try await !condition() {
            guard ContinuousClock.now < end else { throw DemoError(message) }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

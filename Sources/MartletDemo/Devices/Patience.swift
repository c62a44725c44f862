/// Waiting that ends.
enum Patience {
    /// Looks every now and then until `condition` holds.
    /// - Throws: `DemoError` with the message where it does not within the time; what `condition`
    ///   throws.
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

internal import SystemKit

extension MartletClient {
    /// Returns the state of the first download, by class. With `ClientOptions.seeding` `.server`,
    /// an app can use the device as soon as the first class has arrived, while the download
    /// continues.
    ///
    /// `ClientEvent.seeded` reports when another class is complete.
    /// - Throws: `StoreError` if the client was closed, or the file fails.
    public func seedingStatus() async throws -> SeedingStatus {
        try await device.run { try $0.seedingStatus() }
    }

    /// Waits until the first download is complete. Call it after `start()` or `sync()`; otherwise
    /// nothing arrives.
    /// - Throws: `SyncError` if a person must act first; `StoreError` if the client was closed.
    public func waitUntilSeeded() async throws {
        let events = events
        guard try await !seedingStatus().isComplete else { return }
        for await event in events {
            switch event {
            case .seeded: if try await seedingStatus().isComplete { return }
            case .failed(let error, retryIn: nil): throw error
            default: break
            }
        }
        // The client was closed.
        _ = try await seedingStatus()
    }
}

internal import SystemKit

extension MartletClient {
    /// What of the first download is here, by class: with `ClientOptions.seeding` `.server`, a device
    /// can be used as soon as the first class is here, while the others come.
    ///
    /// `ClientEvent.seeded` tells when another class is complete.
    public func seedingStatus() async throws -> SeedingStatus {
        try await device.run { try $0.seedingStatus() }
    }

    /// Waits until everything of the first download is here. To be called when the client was
    /// started, or after a `sync()`; else nothing comes.
    /// - Throws: `SyncError` where a person must act first; `StoreError` where the client was closed.
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

public import Martlet
public import MartletDevice
public import MartletStore

/// A device of a simulated world: the app's data centers and tables work on it as on a client.
///
/// The network is the world's, so there is nothing to start or to wait for. Observations and drafts
/// read what is there, and hear of nothing.
public struct SimulatedDevice: SyncedDatabase {
    /// From 0.
    public let number: Int
    let world: SimulatedWorld
    /// Which start of the device it is good for; nil: whichever.
    let life: Int?

    /// Whether the device has the app's next version; see `Simulation.nextVersion`.
    public var isUpdated: Bool {
        get async { await world.isUpdated(number) }
    }

    /// - Throws: `StoreError` `.inputOutput` where the device is off or was switched off meanwhile;
    ///   what `body` throws.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await world.read(number, life: life, body)
    }

    /// - Throws: `StoreError` `.inputOutput` where the device is off, was switched off meanwhile or
    ///   its disk fails; what `body` throws.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await world.write(number, life: life, body)
    }

    /// - Throws: `StoreError` `.inputOutput` where the device is off or was switched off meanwhile.
    public func parked() async throws -> [ParkedSet] {
        try await world.parked(number, life: life)
    }

    /// Gives a refused set up. Where the resolver does so, its marks must stand elsewhere.
    /// - Throws: `StoreError`, as on a client, and where the device is off.
    public func drop(_ identifier: String) async throws {
        try await world.drop(identifier, on: number, life: life)
    }

    /// Makes a refused set's edits again.
    /// - Throws: `StoreError`, as on a client, and where the device is off.
    @discardableResult
    public func retry(_ identifier: String) async throws -> String {
        try await world.retry(identifier, on: number, life: life)
    }

    public var _changes: ChangeHub { world.hubs[number] }

    /// Reads; nothing is told of later.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        willRead()
        return (try await read(body), .nothing)
    }
}

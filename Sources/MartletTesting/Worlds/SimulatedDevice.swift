public import Martlet
public import MartletDevice
public import MartletStore

/// A device of a simulated world. The app's data centers and tables work on it as on a client.
///
/// The network belongs to the world, so there is nothing to start or to wait for. Observations and
/// drafts read the present data, and are not notified of changes.
///
/// ```swift
/// let device = world.devices[0]
/// try await device.write { try $0.insert("teams", ["name": "Falcons"]) }
/// let names = try await device.read { try $0.rows("SELECT name FROM teams") }
/// ```
public struct SimulatedDevice: SyncedDatabase {
    /// The device's number, from 0.
    public let number: Int
    let world: SimulatedWorld
    /// The start of the device for which this value is valid; nil for any.
    let life: Int?

    /// Whether the device has the app's next version; see `Simulation.nextVersion`.
    public var isUpdated: Bool {
        get async { await world.isUpdated(number) }
    }

    /// Reads the device's tables.
    /// - Throws: `StoreError` `.inputOutput` if the device is off or was switched off meanwhile;
    ///   errors of `body`.
    public func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await world.read(number, life: life, body)
    }

    /// Runs `body` as one save.
    /// - Throws: `StoreError` `.inputOutput` if the device is off, was switched off meanwhile or
    ///   its disk fails; errors of `body`.
    @discardableResult
    public func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await world.write(number, life: life, body)
    }

    /// Returns the refused sets.
    /// - Throws: `StoreError` `.inputOutput` if the device is off or was switched off meanwhile.
    public func parked() async throws -> [ParkedSet] {
        try await world.parked(number, life: life)
    }

    /// Gives a refused set up. If the resolver does so, the set's marks must be stored elsewhere.
    /// - Throws: `StoreError`, as on a client, and if the device is off.
    public func drop(_ identifier: String) async throws {
        try await world.drop(identifier, on: number, life: life)
    }

    /// Redoes a refused set's edits.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError`, as on a client, and if the device is off.
    @discardableResult
    public func retry(_ identifier: String) async throws -> String {
        try await world.retry(identifier, on: number, life: life)
    }

    public var _changes: ChangeHub { world.hubs[number] }

    /// Reads once; later changes are not notified.
    /// - Throws: `StoreError`, as on a client, and what `body` throws.
    public func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        willRead()
        return (try await read(body), .nothing)
    }
}

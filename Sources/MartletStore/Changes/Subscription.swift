/// A subscription to a hub, which ends when its last reference is released.
final class Subscription: Sendable {
    let hub: ChangeHub
    private let number: Int

    init(_ hub: ChangeHub) {
        self.hub = hub
        number = hub.subscribe()
    }

    deinit {
        hub.unsubscribe(number)
    }

    /// Waits until there is a change that counts.
    /// - Returns: False if there will be none.
    func wait(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await hub.wait(number)
    }

    /// Returns the changes since the last call, combined, and forgets them; nil if there are none.
    func take() -> DatabaseChange? { hub.take(number) }

    /// Marks the start of a read.
    func beginReading() { hub.beginReading(number) }

    /// Marks the end of a read, and sets the region whose changes count from now on.
    /// - Returns: The changes that led to the read, combined; nil if there were none.
    func endReading(_ region: DatabaseRegion) -> DatabaseChange? {
        hub.endReading(number, region)
    }
}

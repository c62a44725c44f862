/// A place among a hub's subscribers, given back when nobody holds it any more.
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

    /// Waits until something that counts has happened; false at the end.
    func wait(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await hub.wait(number)
    }

    /// Takes what has happened since the last call.
    func take() -> DatabaseChange? { hub.take(number) }

    /// Notes that a read begins.
    func beginReading() { hub.beginReading(number) }

    /// Notes what the read has read.
    /// - Returns: What led to it.
    func endReading(_ region: DatabaseRegion) -> DatabaseChange? {
        hub.endReading(number, region)
    }
}

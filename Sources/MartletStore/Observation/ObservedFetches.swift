/// The fetches of one loop over an observation: each waits until something it depends on has
/// changed.
struct ObservedFetches<Value: Sendable> {
    private let observation: DatabaseObservation<Value>
    private var subscription: Subscription?
    private var isOver = false
    /// The value shown last, where equal ones are left out.
    private var last: Value?

    init(of observation: DatabaseObservation<Value>) {
        self.observation = observation
    }

    /// The next value, and what led to it; nil for the first.
    /// - Returns: nil at the end.
    /// - Throws: What the fetch throws. The next call waits for any change and tries again.
    mutating func next(
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> (value: Value, change: DatabaseChange?)? {
        var cause: DatabaseChange?
        while !isOver {
            guard let subscription = await awaken() else { break }
            let fetch = observation.fetch
            let (value, region): (Value, DatabaseRegion)
            do {
                // All told of until it begins is in the read. Later, the session's own look at the schema
                // has fixed the moment, and what is committed after it would be neither read nor told of.
                (value, region) = try await observation.database._observedRead(
                    willRead: { subscription.beginReading() }, fetch)
            } catch {
                if Task.isCancelled { break }
                throw error
            }
            if let change = subscription.endReading(region) { cause.add(change) }
            if let isSame = observation.isSame {
                if let last, isSame(last, value) { continue }
                last = value
            }
            return (value, cause)
        }
        end()
        return nil
    }

    /// The same for loops that an error ends.
    mutating func nextOrEnd(
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> (value: Value, change: DatabaseChange?)? {
        do {
            return try await next()
        } catch {
            end()
            throw error
        }
    }

    /// Waits for the next change; the first time does not wait.
    private mutating func awaken(
        isolation: isolated (any Actor)? = #isolation
    ) async -> Subscription? {
        guard !Task.isCancelled else { return nil }
        guard let subscription else {
            let made = Subscription(observation.database._changes)
            subscription = made
            return made
        }
        return await subscription.wait() ? subscription : nil
    }

    /// Ends the observation before its iterator goes.
    private mutating func end() {
        isOver = true
        subscription = nil
    }
}

/// The fetches of one loop over an observation. Each one waits until something that it depends on
/// has changed.
struct ObservedFetches<Value: Sendable> {
    private let observation: DatabaseObservation<Value>
    private var subscription: Subscription?
    private var isOver = false
    /// The last value returned, if equal values are left out.
    private var last: Value?

    init(of observation: DatabaseObservation<Value>) {
        self.observation = observation
    }

    /// Waits for a relevant change, and fetches.
    /// - Returns: The value, and the change that caused it, which is nil for the first value; nil
    ///   at the end.
    /// - Throws: The error of the fetch. The next call waits for any change and tries again.
    mutating func next(
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> (value: Value, change: DatabaseChange?)? {
        var cause: DatabaseChange?
        while !isOver {
            guard let subscription = await awaken() else { break }
            let fetch = observation.fetch
            let (value, region): (Value, DatabaseRegion)
            do {
                // The read includes every change published before it begins. Later, the session's
                // own look at the schema has fixed the moment of the read: a commit after it would
                // be neither read nor reported.
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

    /// Does the same for loops that end with an error.
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

    /// Waits for the next change; the first call does not wait.
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

    /// Ends the observation before the iterator is released.
    private mutating func end() {
        isOver = true
        subscription = nil
    }
}

/// The values of one setting; see `Settings.values(_:)`.
struct SettingValues<Value: Codable & Sendable>: AsyncSequence, Sendable {
    let settings: Settings
    let key: SettingKey<Value>

    /// Begins to observe. The observation ends when the iterator is released.
    func makeAsyncIterator() -> Iterator {
        // Listening begins before the first read, so that no change falls between.
        Iterator(
            settings: settings, key: key,
            wakes: settings.observers.wakes(for: key.name).makeAsyncIterator())
    }

    /// Iterates over the values. Only one task may use it.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate let settings: Settings
        fileprivate let key: SettingKey<Value>
        fileprivate var wakes: AsyncStream<Void>.Iterator
        /// The JSON returned last; the inner nil stands for the default.
        private var last: String??
        private var hasEnded = false

        fileprivate init(
            settings: Settings, key: SettingKey<Value>, wakes: AsyncStream<Void>.Iterator
        ) {
            self.settings = settings
            self.key = key
            self.wakes = wakes
        }

        /// Waits for the next value.
        /// - Returns: The value; nil if the settings were closed or the task was cancelled.
        /// - Throws: `StoreError` if the value cannot be read; the sequence then ends.
        mutating func next() async throws -> Value? {
            guard !hasEnded else { return nil }
            do {
                while true {
                    if last != nil, await wakes.next() == nil { return nil }
                    if Task.isCancelled { return nil }
                    let json = try await settings.json(key)
                    if let last, last == json { continue }
                    last = .some(json)
                    return try settings.value(json, of: key)
                }
            } catch {
                hasEnded = true
                if (error as? StoreError)?.kind == .misuse { return nil }  // Closed meanwhile.
                throw error
            }
        }
    }
}

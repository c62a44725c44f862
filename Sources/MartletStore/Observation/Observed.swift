#if canImport(SwiftUI)
    public import SwiftUI

    /// The newest value of an observation, as a property of a SwiftUI view. It observes for as long
    /// as the view's state lives, and SwiftUI redraws the view for each value.
    ///
    /// ```swift
    /// struct RosterView: View {
    ///     @Observed private var players: [Player]
    ///
    ///     init(roster: Roster) {
    ///         _players = Observed(wrappedValue: [], roster.observePlayers())
    ///     }
    /// }
    /// ```
    @propertyWrapper
    public struct Observed<Value: Sendable>: DynamicProperty {
        @State private var holder = ObservedHolder<Value>()
        private let initial: Value
        private let observation: DatabaseObservation<Value>

        /// Creates the property.
        /// - Parameters:
        ///   - wrappedValue: The value until the first fetch has ended.
        ///   - observation: The source of the values. Only the one from the view's first drawing is
        ///     used.
        public init(wrappedValue: Value, _ observation: DatabaseObservation<Value>) {
            initial = wrappedValue
            self.observation = observation
        }

        /// The newest value.
        @MainActor public var wrappedValue: Value { holder.observed?.value ?? initial }

        /// The value with its cause, and the error of the last fetch; nil until the view is drawn
        /// for the first time.
        @MainActor public var projectedValue: ObservedValue<Value>? { holder.observed }

        /// Begins to observe. SwiftUI calls it on the main thread, before it draws the view.
        public func update() {
            let (holder, initial, observation) = (holder, initial, observation)
            MainActor.assumeIsolated { holder.begin(initial, observation) }
        }
    }

    /// The part of a view's state that holds an observation.
    @MainActor
    private final class ObservedHolder<Value: Sendable> {
        private(set) var observed: ObservedValue<Value>?

        nonisolated init() {}

        func begin(_ initial: Value, _ observation: DatabaseObservation<Value>) {
            guard observed == nil else { return }
            observed = ObservedValue(initial, of: observation)
        }
    }
#endif

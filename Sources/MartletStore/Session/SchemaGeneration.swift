internal import Synchronization

/// Counts changes to a database's schema, so that each connection to it forgets in time what it
/// knew of the tables.
package final class SchemaGeneration: Sendable {
    private let number = Atomic<Int>(0)

    package init() {}

    /// The schema has changed, or may have.
    package func advance() {
        number.add(1, ordering: .releasing)
    }

    var current: Int { number.load(ordering: .acquiring) }
}

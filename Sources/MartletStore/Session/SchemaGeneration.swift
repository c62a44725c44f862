internal import Synchronization

/// Counts changes to a database's schema. Each connection compares the count to know when to forget
/// its descriptions of the tables.
package final class SchemaGeneration: Sendable {
    private let number = Atomic<Int>(0)

    package init() {}

    /// Counts a change, or a possible change, of the schema.
    package func advance() {
        number.add(1, ordering: .releasing)
    }

    var current: Int { number.load(ordering: .acquiring) }
}

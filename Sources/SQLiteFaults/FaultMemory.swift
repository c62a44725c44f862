internal import CSQLite

/// SQLite's memory, which is refused when told to.
///
/// For a process of its own, in which one thread uses SQLite: it takes the place of SQLite's
/// allocator for good, and every connection's small memory at hand is switched off, so that each
/// allocation comes by here.
public enum FaultMemory {
    // Set once, before SQLite is used; the others by the one thread that uses it.
    nonisolated(unsafe) private static var real = sqlite3_mem_methods()
    nonisolated(unsafe) private static var count = 0
    nonisolated(unsafe) private static var failure: (number: Int, isLasting: Bool)?

    /// Takes the place of SQLite's allocator; SQLite must not have been used yet.
    /// - Returns: Whether SQLite took it.
    public static func install() -> Bool {
        guard csqlite_get_allocator(&real) == SQLITE_OK else { return false }
        var faulty = real
        faulty.xMalloc = { FaultMemory.refuses() ? nil : FaultMemory.real.xMalloc($0) }
        faulty.xRealloc = { FaultMemory.refuses() ? nil : FaultMemory.real.xRealloc($0, $1) }
        return csqlite_set_allocator(&faulty) == SQLITE_OK
            && csqlite_use_no_lookaside() == SQLITE_OK
    }

    /// Allocations, and reallocations, asked for until now.
    public static var allocations: Int { count }

    /// Makes an allocation fail.
    /// - Parameters:
    ///   - allocations: Which one from now; 1 is the next.
    ///   - lasting: Whether all later ones fail too, until `heal()`.
    public static func failAfter(allocations: Int, lasting: Bool) {
        failure = (count + max(1, allocations), lasting)
    }

    /// Takes back `failAfter`.
    public static func heal() { failure = nil }

    private static func refuses() -> Bool {
        count += 1
        guard let failure else { return false }
        return failure.isLasting ? count >= failure.number : count == failure.number
    }
}

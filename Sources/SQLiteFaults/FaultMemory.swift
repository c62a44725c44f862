internal import CSQLite

/// SQLite's memory, whose allocations fail on request.
///
/// Use it in a separate process, in which one thread uses SQLite. It replaces SQLite's allocator
/// for the life of the process, and switches off each connection's lookaside memory, so that every
/// allocation passes through it.
public enum FaultMemory {
    // This is set once, before SQLite is used. The other variables are set by the one thread that
    // uses SQLite.
    nonisolated(unsafe) private static var real = sqlite3_mem_methods()
    nonisolated(unsafe) private static var count = 0
    nonisolated(unsafe) private static var failure: (number: Int, isLasting: Bool)?

    /// Replaces SQLite's allocator. SQLite must not have been used yet.
    /// - Returns: True if SQLite accepted it.
    public static func install() -> Bool {
        guard csqlite_get_allocator(&real) == SQLITE_OK else { return false }
        var faulty = real
        faulty.xMalloc = { FaultMemory.refuses() ? nil : FaultMemory.real.xMalloc($0) }
        faulty.xRealloc = { FaultMemory.refuses() ? nil : FaultMemory.real.xRealloc($0, $1) }
        return csqlite_set_allocator(&faulty) == SQLITE_OK
            && csqlite_use_no_lookaside() == SQLITE_OK
    }

    /// The number of allocations and reallocations requested so far.
    public static var allocations: Int { count }

    /// Makes an allocation fail.
    /// - Parameters:
    ///   - allocations: The number of the allocation from now; 1 is the next.
    ///   - lasting: True if all later ones fail too, until `heal()`.
    public static func failAfter(allocations: Int, lasting: Bool) {
        failure = (count + max(1, allocations), lasting)
    }

    /// Cancels `failAfter`.
    public static func heal() { failure = nil }

    private static func refuses() -> Bool {
        count += 1
        guard let failure else { return false }
        return failure.isLasting ? count >= failure.number : count == failure.number
    }
}

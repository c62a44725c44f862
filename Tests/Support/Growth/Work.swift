internal import AllocationCounter
internal import SQLiteFaults

/// What a piece of work has cost, counted.
struct Work {
    private static let names = [
        "steps on devices", "pages on devices", "steps on the server", "pages on the server",
        "requests for memory", "bytes of these", "bytes at once",
    ]
    /// Counts up to which nobody asks: what does not depend on the input may be that much.
    private static let floors = [20_000, 4_000, 20_000, 4_000, 20_000, 4 << 20, 8 << 20]

    /// Of a tree that is ten times as large, a search asks for a page more; one that fits a page is gone
    /// through without asking again.
    private static let slack = [1, 2.5, 1, 2.5, 1, 1, 1]

    private var counts = [Int](repeating: 0, count: names.count)

    struct Count {
        let name: String
        let small: Int
        let large: Int
        let isTooMuch: Bool
    }

    /// Compares with the work for an input of a tenth.
    func growth(from small: Work, allowed: Double) -> [Count] {
        Self.names.indices.map { index in
            let (before, after) = (small.counts[index], counts[index])
            return Count(
                name: Self.names[index], small: before, large: after,
                isTooMuch: after > Self.floors[index]
                    && Double(after) > allowed * Double(before) * Self.slack[index])
        }
    }

    /// Adds what was done on devices and the server, and what the thread asked of memory.
    mutating func add(devices: DiskWork, server: DiskWork, _ memory: Memory) {
        let more = [
            devices.steps, devices.pages, server.steps, server.pages, memory.requests, memory.bytes,
        ]
        for (index, number) in more.enumerated() { counts[index] += number }
        counts[more.count] = max(counts[more.count], memory.most)
    }

    /// What the thread has asked of memory.
    struct Memory {
        var requests = Int(allocations_of_thread())
        var bytes = Int(allocated_bytes_of_thread())
        var most = 0

        /// Begins to count.
        static func begin() -> Memory {
            _ = take_peak_bytes_of_thread()
            return Memory()
        }

        /// What was asked since.
        func end() -> Memory {
            let most = Int(take_peak_bytes_of_thread())
            let now = Memory()
            return Memory(
                requests: now.requests - requests, bytes: now.bytes - bytes, most: most)
        }
    }
}

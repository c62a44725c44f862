import Synchronization

/// A number that counts down.
final class Ticks: Sendable {
    private let count: Mutex<Int>

    init(_ count: Int) {
        self.count = Mutex(count)
    }

    var value: Int { count.withLock { $0 } }

    func decrement() -> Int {
        count.withLock { count in
            count -= 1
            return count
        }
    }
}

/// The future events by virtual time. Events of the same time are in the order in which they were
/// added.
struct EventQueue<Event> {
    private struct Entry {
        let time: Int64
        let order: UInt64
        let event: Event

        func precedes(_ other: Entry) -> Bool {
            time != other.time ? time < other.time : order < other.order
        }
    }

    /// A binary heap with the earliest event first.
    private var heap: [Entry] = []
    private var order: UInt64 = 0

    var isEmpty: Bool { heap.isEmpty }

    /// The time of the next event; nil if there is none.
    var nextTime: Int64? { heap.first?.time }

    mutating func put(_ event: Event, at time: Int64) {
        order += 1
        heap.append(Entry(time: time, order: order, event: event))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].precedes(heap[parent]) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func take() -> (time: Int64, event: Event)? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.time, first.event)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
                if heap[child].precedes(heap[smallest]) { smallest = child }
            }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

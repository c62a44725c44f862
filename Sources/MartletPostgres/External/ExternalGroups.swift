import MartletModel
import MartletServerCore

/// Divides drained changes into change sets.
enum ExternalGroups {
    /// Returns one group for each transaction, in the order of their last changes, so that a
    /// transaction that saw another's work follows it. Rows are read in their present state, so
    /// transactions that touched the same record form one group, together with those between them.
    /// - Parameter changes: The changes, in the order of their numbers.
    /// - Returns: The changes of each group. Each record is listed once, at its last change.
    static func of(_ changes: [ExternalChange]) -> [[ExternalChange]] {
        var last: [Int64: Int64] = [:]
        for change in changes {
            last[change.transaction] = max(last[change.transaction] ?? 0, change.number)
        }
        var positions: [Int64: Int] = [:]
        for (position, transaction) in last.sorted(by: { $0.value < $1.value }).enumerated() {
            positions[transaction.key] = position
        }
        func position(of change: ExternalChange) -> Int { positions[change.transaction] ?? 0 }

        // `reach` is the last transaction of a group that begins with a transaction.
        var first: [RecordAddress: Int] = [:]
        var reach = Array(0..<positions.count)
        var ends: [RecordAddress: Int] = [:]
        for change in changes {
            let position = position(of: change)
            let address = change.record.address
            first[address] = min(first[address] ?? position, position)
            ends[address] = max(ends[address] ?? position, position)
        }
        for (address, begin) in first {
            reach[begin] = max(reach[begin], ends[address] ?? begin)
        }
        var group = [Int](repeating: 0, count: positions.count)
        var count = 0
        var end = 0
        for position in positions.values.sorted() {
            end = max(end, reach[position])
            group[position] = count
            if position == end { count += 1 }
        }
        var groups = [[ExternalChange]](repeating: [], count: count)
        var taken: Set<RecordAddress> = []
        for change in changes.reversed() where taken.insert(change.record.address).inserted {
            groups[group[position(of: change)]].append(change)
        }
        return groups.map { $0.reversed() }
    }
}

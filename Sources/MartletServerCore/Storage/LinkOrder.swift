package import MartletModel

/// Orders records so that each follows the records that it refers to.
package struct LinkOrder {
    private var addresses: [RecordAddress] = []
    private var parents: [(child: RecordAddress, parent: RecordAddress)] = []

    package init() {}

    /// Adds a record, and the records to which it refers.
    package mutating func add(_ address: RecordAddress, parents: [RecordAddress]) {
        addresses.append(address)
        for parent in parents { self.parents.append((address, parent)) }
    }

    /// Sorts the records with Kahn's algorithm: a record is free when all its parents are.
    /// - Returns: The records that can be ordered, and those that refer to each other in a circle
    ///   or to a record in one.
    /// - Complexity: O(*n*) in the records and references.
    package func sorted() -> (free: [RecordAddress], bound: [RecordAddress]) {
        let known = Set(addresses)
        var waiting: [RecordAddress: Int] = [:]
        var children: [RecordAddress: [RecordAddress]] = [:]
        for (child, parent) in parents where known.contains(parent) {
            waiting[child, default: 0] += 1
            children[parent, default: []].append(child)
        }
        var free = addresses.filter { waiting[$0] == nil }
        var next = 0
        while next < free.count {
            for child in children[free[next]] ?? [] {
                let left = (waiting[child] ?? 0) - 1
                waiting[child] = left
                if left == 0 { free.append(child) }
            }
            next += 1
        }
        guard free.count < addresses.count else { return (free, []) }
        let entered = Set(free)
        return (free, addresses.filter { !entered.contains($0) })
    }
}

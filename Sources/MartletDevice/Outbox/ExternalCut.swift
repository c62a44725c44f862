internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Cuts external writes into sets that can be sent, if they are too much for one set.
///
/// The bounds of their transactions are not known any more. Each change is put after the changes
/// that it needs: a reference after the new record that it names, a delete after the changes that
/// released the record, a unique value after the change that gave it up. Changes that need each
/// other in a circle stay together, as long as one set can hold them.
struct ExternalCut {
    private let store: LocalStore
    private let changes: [RecordChange]
    private let sizes: [Int]

    /// The most records in one set.
    static let records = 5_000
    static let bytes = Limits.uploadBytes

    /// Creates a cut of these changes.
    /// - Parameter sizes: The approximate bytes of each change on the wire.
    init(_ changes: [RecordChange], sizes: [Int], store: LocalStore) {
        self.store = store
        self.changes = changes
        self.sizes = sizes
    }

    /// Returns the sets, in the order in which they have to be sent.
    /// - Complexity: O(*n* log *n*) in the changes, their references and their unique values.
    func sets() -> [[RecordChange]] {
        if changes.count <= Self.records, sizes.reduce(0, +) <= Self.bytes { return [changes] }
        var sets: [[RecordChange]] = []
        var open: [RecordChange] = []
        var bytes = 0
        var circles = Circles(needs())
        for circle in circles.found() {
            let size = circle.reduce(0) { $0 + sizes[$1] }
            if !open.isEmpty,
                open.count + circle.count > Self.records || bytes + size > Self.bytes
            {
                sets.append(open)
                (open, bytes) = ([], 0)
            }
            for index in circle {
                // A circle that no set can hold is cut anyway.
                if open.count == Limits.recordsPerChangeSet
                    || bytes + sizes[index] > Limits.savedSetBytes
                {
                    sets.append(open)
                    (open, bytes) = ([], 0)
                }
                open.append(changes[index])
                bytes += sizes[index]
            }
        }
        if !open.isEmpty { sets.append(open) }
        return sets
    }

    // MARK: - Dependencies

    private struct UniqueValue: Hashable {
        let type: Int
        let index: Int
        let values: [Value]
    }

    /// Returns, for each change, the changes that have to come before it.
    private func needs() -> [[Int]] {
        var indices: [RecordKey: Int] = [:]
        for (index, change) in changes.enumerated() { indices[key(change)] = index }
        var needs = [[Int]](repeating: [], count: changes.count)
        var givers: [UniqueValue: Int] = [:]
        for (index, change) in changes.enumerated() {
            for target in references(of: change, in: change.after) {
                guard let other = indices[target], other != index,
                    changes[other].operation == .create
                else { continue }
                needs[index].append(other)
            }
            for target in references(of: change, in: change.before ?? Attributes()) {
                guard let other = indices[target], other != index,
                    changes[other].operation == .delete
                else { continue }
                needs[other].append(index)
            }
            for value in uniqueValues(of: change).given { givers[value] = index }
        }
        guard !givers.isEmpty else { return needs }
        for (index, change) in changes.enumerated() {
            for value in uniqueValues(of: change).taken {
                if let giver = givers[value], giver != index { needs[index].append(giver) }
            }
        }
        return needs
    }

    private func key(_ change: RecordChange) -> RecordKey {
        RecordKey(type: store.numbers[change.type], id: change.id)
    }

    private func references(of change: RecordChange, in attributes: Attributes) -> [RecordKey] {
        store.schema.types[change.type].references.compactMap { reference in
            guard let value = attributes[reference.attribute], let id = RecordID(value),
                let target = store.schema.index(of: reference.target)
            else { return nil }
            return RecordKey(type: store.numbers[target], id: id)
        }
    }

    /// Returns the unique values that a change gives up, and those that it takes.
    private func uniqueValues(
        of change: RecordChange
    ) -> (given: [UniqueValue], taken: [UniqueValue]) {
        var given: [UniqueValue] = []
        var taken: [UniqueValue] = []
        for (index, columns) in store.schema.types[change.type].uniques.enumerated() {
            let old = columns.compactMap { change.before?[$0] }.filter { $0 != .null }
            let new = columns.compactMap { change.after[$0] ?? change.before?[$0] }
                .filter { $0 != .null }
            let isGone = change.operation == .delete
            let before =
                old.count == columns.count
                ? UniqueValue(type: change.type, index: index, values: old) : nil
            let after =
                new.count == columns.count && !isGone
                ? UniqueValue(type: change.type, index: index, values: new) : nil
            guard before != after else { continue }
            if let before { given.append(before) }
            if let after { taken.append(after) }
        }
        return (given, taken)
    }
}

/// Finds the circles of changes that need each other (Tarjan, 1972, without recursion).
private struct Circles {
    private let needs: [[Int]]
    private var number: [Int]
    private var lowest: [Int]
    private var isOpen: [Bool]
    private var stack: [Int] = []
    private var path: [(node: Int, next: Int)] = []
    private var count = 0
    private var circles: [[Int]] = []

    /// Creates a search.
    /// - Parameter needs: For each index, the indices that have to come before it.
    init(_ needs: [[Int]]) {
        self.needs = needs
        number = [Int](repeating: 0, count: needs.count)
        lowest = number
        isOpen = [Bool](repeating: false, count: needs.count)
    }

    /// Returns the indices, grouped by circle (most have one member). Each group comes after all
    /// groups that it needs; apart from that, the order stays.
    mutating func found() -> [[Int]] {
        for root in needs.indices where number[root] == 0 {
            enter(root)
            while !path.isEmpty { advance() }
        }
        return circles
    }

    private mutating func enter(_ node: Int) {
        count += 1
        number[node] = count
        lowest[node] = count
        isOpen[node] = true
        stack.append(node)
        path.append((node, 0))
    }

    private mutating func advance() {
        let top = path.count - 1
        let node = path[top].node
        guard path[top].next == needs[node].count else {
            let other = needs[node][path[top].next]
            path[top].next += 1
            if number[other] == 0 {
                enter(other)
            } else if isOpen[other] {
                lowest[node] = min(lowest[node], number[other])
            }
            return
        }
        path.removeLast()
        if let above = path.last?.node { lowest[above] = min(lowest[above], lowest[node]) }
        guard lowest[node] == number[node] else { return }
        var circle: [Int] = []
        while let member = stack.popLast() {
            isOpen[member] = false
            circle.append(member)
            if member == node { break }
        }
        circles.append(circle.sorted())
    }
}

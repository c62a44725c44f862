internal import MartletModel

/// Finds the ids of one type's lists, in the order in which the caller asks for them.
///
/// Entries mostly come in the order of the lists, so the next id is tried first. A dictionary is
/// built when that fails for the first time.
struct RecordIndex {
    /// The created, updated and deleted ids, in this order.
    private let ids: [RecordID]
    /// The number of ids that need an entry: the created and updated ones.
    private let requiredCount: Int
    private var next = 0
    private var positions: [RecordID: Int] = [:]
    private var isFound: [Bool] = []
    private var foundCount = 0
    private var foundRequired = 0

    init(_ changes: TypeChanges) {
        if changes.update.isEmpty, changes.delete.isEmpty {
            ids = changes.create
        } else if changes.create.isEmpty, changes.delete.isEmpty {
            ids = changes.update
        } else {
            ids = changes.create + changes.update + changes.delete
        }
        requiredCount = changes.create.count + changes.update.count
    }

    /// Returns whether each id occurs only once.
    mutating func areUnique() -> Bool {
        if isStrictlyMonotonic() { return true }
        buildPositions()
        return positions.count == ids.count
    }

    /// Whether every created or updated id was found.
    var isComplete: Bool { foundRequired == requiredCount }

    /// The result of looking for a member name among the ids.
    enum Finding {
        case found(RecordID)
        case again
        case unknown
    }

    /// Looks for the id that a member name represents: an integer, or else a text.
    mutating func find(_ token: TextToken, in json: JSONReader) -> Finding {
        if next < ids.count, matches(ids[next], token, in: json) {
            return mark(next)
        }
        if positions.isEmpty { buildPositions() }
        if let number = json.integer(of: token), let position = positions[.integer(number)] {
            return mark(position)
        }
        guard let position = positions[.text(json.text(of: token))] else { return .unknown }
        return mark(position)
    }

    private mutating func mark(_ position: Int) -> Finding {
        if isFound.isEmpty, position == foundCount {
            // Everything is in order so far: the found ids are exactly those before `next`.
        } else {
            if isFound.isEmpty {
                isFound = Array(repeating: false, count: ids.count)
                for earlier in 0..<foundCount { isFound[earlier] = true }
            }
            if isFound[position] { return .again }
            isFound[position] = true
        }
        foundCount += 1
        if position < requiredCount { foundRequired += 1 }
        next = position + 1
        return .found(ids[position])
    }

    private func matches(_ id: RecordID, _ token: TextToken, in json: JSONReader) -> Bool {
        switch id {
        case .integer(let number): json.integer(of: token) == number
        case .text(let text): json.isSame(token, as: text)
        }
    }

    private mutating func buildPositions() {
        positions.reserveCapacity(ids.count)
        for (position, id) in ids.enumerated() { positions[id] = position }
    }

    private func isStrictlyMonotonic() -> Bool {
        guard ids.count > 1 else { return true }
        guard case .integer(let first) = ids[0], case .integer(let second) = ids[1] else {
            return false
        }
        let grows = first < second
        var previous = first
        for id in ids.dropFirst() {
            guard case .integer(let number) = id, number != previous,
                (previous < number) == grows
            else { return false }
            previous = number
        }
        return true
    }
}

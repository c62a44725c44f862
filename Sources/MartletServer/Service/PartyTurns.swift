/// Elements of several parties, taken in turn: one of each party, then the next one of each. A
/// party with many elements delays itself, and not the others.
struct PartyTurns<Element> {
    /// A queue: the element that arrives first leaves first.
    private struct Line<Member> {
        /// The elements; nil if one was taken.
        private var members: [Member?] = []
        private var taken = 0

        var count: Int { members.count - taken }
        var first: Member? { count > 0 ? members[taken] : nil }

        mutating func append(_ member: Member) { members.append(member) }

        mutating func removeFirst() {
            // The element is released at once, because a request may hold megabytes.
            members[taken] = nil
            taken += 1
            guard taken > 32, 2 * taken > members.count else { return }
            members.removeFirst(taken)
            taken = 0
        }
    }

    private var lines: [String: Line<Element>] = [:]
    /// The parties with elements, the next one first.
    private var turns = Line<String>()
    private(set) var count = 0

    /// Adds an element.
    ///
    /// - Complexity: O(1) on average, as for the other operations.
    mutating func append(_ element: Element, of party: String) {
        if lines[party] == nil { turns.append(party) }
        lines[party, default: Line()].append(element)
        count += 1
    }

    /// The next element in turn; nil if there is none.
    var first: Element? { turns.first.flatMap { lines[$0]?.first } }

    mutating func removeFirst() {
        guard let party = turns.first else { return }
        turns.removeFirst()
        lines[party]?.removeFirst()
        count -= 1
        if lines[party]?.count == 0 { lines[party] = nil } else { turns.append(party) }
    }
}

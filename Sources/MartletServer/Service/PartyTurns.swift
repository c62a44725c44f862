/// Elements of several parties, taken in turn: one of each party, then the next one of each. So a party
/// with many waits for itself, and others do not wait for it.
struct PartyTurns<Element> {
    /// What arrives first leaves first.
    private struct Line<Member> {
        /// Nil if it was taken.
        private var members: [Member?] = []
        private var taken = 0

        var count: Int { members.count - taken }
        var first: Member? { count > 0 ? members[taken] : nil }

        mutating func append(_ member: Member) { members.append(member) }

        mutating func removeFirst() {
            // A request may hold megabytes.
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

    /// - Complexity: Constant on average, as that of the others.
    mutating func append(_ element: Element, of party: String) {
        if lines[party] == nil { turns.append(party) }
        lines[party, default: Line()].append(element)
        count += 1
    }

    /// The element whose turn it is; nil if there is none.
    var first: Element? { turns.first.flatMap { lines[$0]?.first } }

    mutating func removeFirst() {
        guard let party = turns.first else { return }
        turns.removeFirst()
        lines[party]?.removeFirst()
        count -= 1
        if lines[party]?.count == 0 { lines[party] = nil } else { turns.append(party) }
    }
}

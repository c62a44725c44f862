/// A set of names that differ if their UTF-8 bytes do, as in databases. Swift's own comparison would treat
/// differently composed accents as equal.
package struct NameSet: Hashable, Sendable {
    private var names: Set<ExactName> = []

    package init() {}

    package init(_ names: some Sequence<String>) {
        self.names = Set(names.map { ExactName($0) })
    }

    package var isEmpty: Bool { names.isEmpty }
    package var count: Int { names.count }

    package func contains(_ name: String) -> Bool { names.contains(ExactName(name)) }

    package mutating func insert(_ name: String) { names.insert(ExactName(name)) }

    package mutating func formUnion(_ other: NameSet) { names.formUnion(other.names) }

    package mutating func formIntersection(_ other: NameSet) {
        names.formIntersection(other.names)
    }

    package mutating func subtract(_ other: NameSet) { names.subtract(other.names) }

    package func intersection(_ other: NameSet) -> NameSet {
        var both = self
        both.formIntersection(other)
        return both
    }

    package func isDisjoint(with other: NameSet) -> Bool { names.isDisjoint(with: other.names) }

    /// Returns the names in the order of their bytes.
    package func sorted() -> [String] { names.sorted().map(\.text) }
}

extension NameSet: ExpressibleByArrayLiteral {
    package init(arrayLiteral names: String...) { self.init(names) }
}

/// A name that equals another one if their UTF-8 bytes are the same.
package struct ExactName: Hashable, Comparable, Sendable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: Self, right: Self) -> Bool {
        left.text.hasSameBytes(as: right.text)
    }

    package static func < (left: Self, right: Self) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        // Equal names have equal hashes, as Swift compares them.
        hasher.combine(text)
    }
}

extension ExactName: ExpressibleByStringLiteral {
    package init(stringLiteral text: String) { self.init(text) }
}

extension [String: String] {
    /// Returns the value of a name with the same bytes; nil if there is none.
    package func value(ofExactName name: String) -> String? {
        guard let index = index(forKey: name), self[index].key.hasSameBytes(as: name) else {
            return nil
        }
        return self[index].value
    }
}

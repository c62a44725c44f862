/// The member names met so far in one object, to notice one that comes twice.
///
/// A short list is searched in order, which is faster than hashing; a long one is a set, so that
/// an object of many members costs no more than O(1) for each.
struct MemberNames {
    private static let shortList = 16

    private var list: [String] = []
    private var set: Set<String> = []

    init(_ names: [String] = []) {
        if names.count <= Self.shortList {
            list = names
        } else {
            set = Set(names)
        }
    }

    /// Forgets the names but keeps the memory, for the next object.
    mutating func forget() {
        list.removeAll(keepingCapacity: true)
        if !set.isEmpty { set = [] }
    }

    /// Adds a name. Returns false when it was there.
    mutating func insert(_ name: String) -> Bool {
        guard set.isEmpty else { return set.insert(name).inserted }
        guard !list.contains(name) else { return false }
        if list.isEmpty { list.reserveCapacity(Self.shortList / 2) }
        list.append(name)
        if list.count > Self.shortList {
            set = Set(list)
            list = []
        }
        return true
    }
}

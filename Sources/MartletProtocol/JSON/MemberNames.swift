/// The member names of one object so far, to detect one that occurs twice.
///
/// A short list is searched in order, which is faster than hashing. A long one is a set, so that an
/// object with many members costs no more than O(1) for each.
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

    /// Removes the names but keeps the memory, for the next object.
    mutating func forget() {
        list.removeAll(keepingCapacity: true)
        if !set.isEmpty { set = [] }
    }

    /// Adds a name. Returns false if it was there already.
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

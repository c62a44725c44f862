/// The members of the last record, as a guess at those of the next one.
///
/// Records of one type mostly have the same members in the same order. As long as the guess is
/// right, member names are compared as bytes in the input and never made into strings, and all
/// records share one list of names.
struct RecordTemplate {
    /// The meaning of a record's member.
    enum Role {
        case attribute
        case revision
        case oldID
    }

    /// One member: the position of its name in the input, and its meaning.
    struct Member {
        var token: TextToken
        var role: Role
    }

    var members: [Member] = []
    /// The names of those members that are attributes.
    var names: [String] = []

    /// Returns only the first members.
    func prefix(_ count: Int) -> RecordTemplate {
        let kept = Array(members.prefix(count))
        let attributeCount = kept.count { $0.role == .attribute }
        return RecordTemplate(members: kept, names: Array(names.prefix(attributeCount)))
    }
}

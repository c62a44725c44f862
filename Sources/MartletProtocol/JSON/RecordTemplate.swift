/// The members of the record read last, as a guess at those of the next one.
///
/// Records of one type mostly have the same members in the same order. As long as the guess holds,
/// member names are compared as bytes in the input and never made into strings, and all records
/// share one list of names.
struct RecordTemplate {
    /// What a member of a record means.
    enum Role {
        case attribute
        case revision
        case oldID
    }

    /// One member: where its name stands in the input, and what it means.
    struct Member {
        var token: TextToken
        var role: Role
    }

    var members: [Member] = []
    /// The names of the members that are attributes.
    var names: [String] = []

    /// The first members only.
    func prefix(_ count: Int) -> RecordTemplate {
        let kept = Array(members.prefix(count))
        let attributeCount = kept.count { $0.role == .attribute }
        return RecordTemplate(members: kept, names: Array(names.prefix(attributeCount)))
    }
}

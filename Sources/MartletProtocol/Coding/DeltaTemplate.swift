/// The members of the delta read last, as a guess at those of the next one: see `RecordTemplate`.
struct DeltaTemplate {
    /// What a member of a delta means.
    enum Role {
        case version
        case seconds
        case type
        case id
        case operation
        case payload
        case isNew
        case recordRevision
        case identifier
        case oldID
        /// Nothing this version knows.
        case other

        /// What a name means.
        init(_ name: String) {
            self =
                switch name {
                case "v": .version
                case "t": .seconds
                case "e": .type
                case "eid": .id
                case "op": .operation
                case "p": .payload
                case "new": .isNew
                case "r": .recordRevision
                case "set": .identifier
                case "old": .oldID
                default: .other
                }
        }
    }

    /// One member: where its name stands in the input, and what it means.
    struct Member {
        var token: TextToken
        var role: Role
    }

    var members: [Member] = []
    /// The entity type, and where it stands in the input without its quotes.
    var type: (token: TextToken, name: String)?
    /// The members of the payload; their names stand in the input as texts within a text.
    var attributes = RecordTemplate()
}

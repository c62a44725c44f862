/// The members of the last delta, as a guess at those of the next one: see `RecordTemplate`.
struct DeltaTemplate {
    /// The meaning of a delta's member.
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
        /// A member that this version does not know.
        case other

        /// Finds the meaning of a name.
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

    /// One member: the position of its name in the input, and its meaning.
    struct Member {
        var token: TextToken
        var role: Role
    }

    var members: [Member] = []
    /// The entity type, and its position in the input without its quotes.
    var type: (token: TextToken, name: String)?
    /// The members of the payload. Their names are texts within a text in the input.
    var attributes = RecordTemplate()
}

/// The address of a record in a data set: the position of its type in the schema, and its id.
public struct RecordAddress: Hashable, Sendable {
    /// The position of the type in the schema.
    public let type: Int
    /// The record's id.
    public let id: RecordID

    public init(_ type: Int, _ id: RecordID) {
        self.type = type
        self.id = id
    }
}

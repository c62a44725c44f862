/// The address of a record in a data set: the position of its type in the schema, and its id.
package struct RecordAddress: Hashable, Sendable {
    /// The position of the type in the schema.
    package let type: Int
    /// The record's id.
    package let id: RecordID

    package init(_ type: Int, _ id: RecordID) {
        self.type = type
        self.id = id
    }
}

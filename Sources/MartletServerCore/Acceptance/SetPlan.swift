package import MartletModel
internal import MartletProtocol

/// A change set read against the schema: its changes, record by record.
package struct SetPlan: Sendable {
    /// A change of one record.
    package struct Change: Sendable {
        /// The position of the record's type in the schema.
        package let type: Int
        /// The record's id as sent, perhaps temporary.
        package let id: RecordID
        /// The revision on which the change is based.
        package let base: Revision?
        package let attributes: Attributes

        package var address: RecordAddress { RecordAddress(type, id) }
    }

    package internal(set) var creates: [Change] = []
    package internal(set) var updates: [Change] = []
    package internal(set) var deletes: [Change] = []
    /// The positions of the set's types in the schema, in the set's order.
    package internal(set) var types: [Int] = []
    /// The temporary ids that the set uses and does not create. Only the device's id map knows
    /// them.
    package internal(set) var earlierTemporaries: [RecordAddress] = []

    /// The number of records that the set creates, updates or deletes.
    package var changeCount: Int { creates.count + updates.count + deletes.count }

    /// Returns the operations that the set does on a type.
    ///
    /// - Complexity: O(*n*) in the number of changes.
    package func operations(on type: Int) -> Operations {
        var needed: Operations = []
        if creates.contains(where: { $0.type == type }) { needed.insert(.create) }
        if updates.contains(where: { $0.type == type }) { needed.insert(.update) }
        if deletes.contains(where: { $0.type == type }) { needed.insert(.delete) }
        return needed
    }
}

/// The storage's checks of single values and ids. A check returns nil, or a sentence such as
/// “expected an integer, found text”.
package struct ValueChecks: Sendable {
    package let value: @Sendable (Value, Attribute, EntityType) -> String?
    package let id: @Sendable (RecordID, EntityType) -> String?

    package init(
        value: @escaping @Sendable (Value, Attribute, EntityType) -> String?,
        id: @escaping @Sendable (RecordID, EntityType) -> String?
    ) {
        self.value = value
        self.id = id
    }
}

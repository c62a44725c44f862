package import MartletModel

/// A record's address on the device that made the record, with a temporary id. The same id on
/// another device belongs to another record.
package struct TemporaryAddress: Hashable, Sendable {
    package let device: Int64
    /// The type's position in the schema.
    package let type: Int
    /// The temporary id.
    package let number: Int64

    /// Makes the address; nil if the id is not temporary.
    package init?(device: Int64, _ address: RecordAddress) {
        guard address.id.isTemporary, case .integer(let number) = address.id else { return nil }
        self.device = device
        type = address.type
        self.number = number
    }
}

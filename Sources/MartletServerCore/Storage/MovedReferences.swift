package import MartletModel

/// A set's updates, and the records whose updates refer to a given record.
///
/// The search for the effects of deletes reads the updates only here, so `looks` measures its cost.
package struct MovedReferences {
    private struct Target: Hashable {
        let type: Int
        let attribute: String
        let value: Value
    }

    private let updated: [RecordAddress: Attributes]
    private var holders: [Target: [RecordAddress]] = [:]
    /// The number of times that an update was read.
    package private(set) var looks: Int

    /// Takes the updates.
    ///
    /// - Parameters:
    ///   - updated: The new attributes of each record, with references as permanent ids.
    ///   - references: Returns the attributes of a type, by its index, that are references.
    /// - Complexity: O(*n* log *n*) in the number of references.
    package init(
        _ updated: [RecordAddress: Attributes], references: (_ type: Int) -> [String]
    ) {
        self.updated = updated
        looks = updated.count
        for (address, attributes) in updated {
            for attribute in references(address.type) {
                guard let value = attributes[attribute], value != .null else { continue }
                let target = Target(type: address.type, attribute: attribute, value: value)
                holders[target, default: []].append(address)
            }
        }
        for target in holders.keys { holders[target]?.sort { $0.id < $1.id } }
    }

    /// Returns the updated records of a type that refer to a record, in the order of their ids.
    package mutating func holders(
        of id: RecordID, type: Int, attribute: String
    ) -> [RecordAddress] {
        let found = holders[Target(type: type, attribute: attribute, value: id.value)] ?? []
        looks += found.count
        return found
    }

    /// Returns the new value of a record's attribute; nil if the set does not change it.
    package mutating func value(of attribute: String, of record: RecordAddress) -> Value? {
        looks += 1
        return updated[record]?[attribute]
    }
}

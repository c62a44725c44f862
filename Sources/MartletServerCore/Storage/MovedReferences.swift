package import MartletModel

/// A set's updates, and the records whose updates refer to a given record.
///
/// Whoever works out what deletes change reads the updates here only, so `looks` says what that costs.
package struct MovedReferences {
    private struct Target: Hashable {
        let type: Int
        let attribute: String
        let value: Value
    }

    private let updated: [RecordAddress: Attributes]
    private var holders: [Target: [RecordAddress]] = [:]
    /// How many updates were looked at, each time counted.
    package private(set) var looks: Int

    /// - Parameters:
    ///   - updated: The attributes that each record is given, with references as permanent ids.
    ///   - references: The attributes of a type, by its index, that are references.
    /// - Complexity: O(*n* log *n*), *n* references given.
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

    /// Returns the value that an attribute of a record is given; nil if the set leaves it alone.
    package mutating func value(of attribute: String, of record: RecordAddress) -> Value? {
        looks += 1
        return updated[record]?[attribute]
    }
}

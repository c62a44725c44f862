import MartletModel

extension EntityType {
    /// Returns a source's value as a given id of this type; nil for null. In a type with text keys
    /// every given id is a text, even if it has only digits.
    func givenID(_ value: Value) -> RecordID? {
        guard let id = RecordID(value), keyKind == .text else { return RecordID(value) }
        return .text(id.description)
    }
}

/// How much a message may hold while it is read.
package struct ReadingLimits: Sendable {
    package var changeSets: Int
    /// In one change set.
    package var records: Int
    /// Of one change set.
    package var changeSetBytes: Int
    /// Of one value.
    package var textBytes: Int

    /// What a request may hold.
    package static let request = ReadingLimits(
        changeSets: Limits.changeSetsPerRequest, records: Limits.recordsPerChangeSet,
        changeSetBytes: Limits.changeSetBytes, textBytes: Limits.textBytes)
    /// What an answer may hold: as much as fits its bytes.
    package static let none = ReadingLimits(
        changeSets: .max, records: .max, changeSetBytes: .max, textBytes: .max)

    package init(changeSets: Int, records: Int, changeSetBytes: Int, textBytes: Int) {
        self.changeSets = changeSets
        self.records = records
        self.changeSetBytes = changeSetBytes
        self.textBytes = textBytes
    }
}

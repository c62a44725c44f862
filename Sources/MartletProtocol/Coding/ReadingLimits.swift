/// The limits on a message while it is read.
package struct ReadingLimits: Sendable {
    package var changeSets: Int
    /// The most records in one change set.
    package var records: Int
    /// The most bytes of one change set.
    package var changeSetBytes: Int
    /// The most bytes of one text value.
    package var textBytes: Int

    /// The limits of a request.
    package static let request = ReadingLimits(
        changeSets: Limits.changeSetsPerRequest, records: Limits.recordsPerChangeSet,
        changeSetBytes: Limits.changeSetBytes, textBytes: Limits.textBytes)
    /// The limits of an answer, which only its bytes bound.
    package static let none = ReadingLimits(
        changeSets: .max, records: .max, changeSetBytes: .max, textBytes: .max)

    package init(changeSets: Int, records: Int, changeSetBytes: Int, textBytes: Int) {
        self.changeSets = changeSets
        self.records = records
        self.changeSetBytes = changeSetBytes
        self.textBytes = textBytes
    }
}

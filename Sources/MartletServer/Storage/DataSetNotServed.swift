/// The error for a good token that names a data set which this server does not have.
struct DataSetNotServed: Error, Hashable, Sendable {}

/// The error for a data set that cannot be opened now. The log has named the reason.
struct DataSetCannotBeOpened: Error, Hashable, Sendable {
    let reason: String
}

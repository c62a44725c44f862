/// The error for a good token that names a data set which this server does not have.
struct DataSetNotServed: Error, Hashable, Sendable {}

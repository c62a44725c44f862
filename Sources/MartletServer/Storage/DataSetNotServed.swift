/// A good token names a data set that this server does not have.
struct DataSetNotServed: Error, Hashable, Sendable {}

/// The revision of a data set or of a record: 0 before the first change, then one more for each
/// accepted change set.
public typealias Revision = Int64

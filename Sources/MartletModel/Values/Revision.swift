/// The revision of a data set or a record: 0 before the first change, and one more for each
/// accepted change set.
public typealias Revision = Int64

package import MartletModel

/// A source of records of one type for an import.
///
/// An import reads a source more than once. The source must return the same records each time.
package protocol ImportSource: Sendable {
    /// The entity type's name.
    var type: String { get }
    /// The name of the source in messages, such as a file's name.
    var label: String { get }
    /// Starts reading.
    /// - Throws: `CSVFault` or `TransferError` if the columns do not fit the type.
    func open(_ type: EntityType) throws -> any ImportCursor
}

/// Reads a source from its first record to its last.
package protocol ImportCursor {
    /// The target of each column, in the order of the values.
    var columns: [ImportColumn] { get }
    /// The line of the last record, counted from 1, for messages.
    var line: Int { get }
    /// A hash of all content read so far, which is the same for the same content.
    var fingerprint: UInt64 { get }
    /// Returns the next record's values; nil at the end. Keys and references are given ids:
    /// integers or texts, whatever the type's keys are.
    mutating func next() throws -> [Value]?
}

/// The content of one column of a source.
package enum ImportColumn: Hashable, Sendable {
    /// The record's given id.
    case key
    /// An attribute.
    case attribute(Attribute)
    /// An attribute with the given id of a record of another type, or of the same type.
    case reference(Attribute, Reference)

    /// The column's name; nil for the key.
    var name: String? {
        switch self {
        case .key: nil
        case .attribute(let attribute), .reference(let attribute, _): attribute.name
        }
    }
}

public import MartletModel

/// The records of one type, to be imported.
///
/// A source is read more than once and gives the same records each time.
public protocol ImportSource: Sendable {
    /// The entity type's name.
    var type: String { get }
    /// What to call the source in messages: a file's name.
    var label: String { get }
    /// Starts reading.
    /// - Throws: `CSVFault` or `TransferError` when the columns do not suit the type.
    func open(_ type: EntityType) throws -> any ImportCursor
}

/// Reads a source from its first record to its last.
public protocol ImportCursor {
    /// Where each column goes, in the order of the values.
    var columns: [ImportColumn] { get }
    /// The line of the last record, counted from 1, for messages.
    var line: Int { get }
    /// A hash of everything read so far, the same for the same content.
    var fingerprint: UInt64 { get }
    /// The next record's values; nil at the end. Keys and references are given ids: integers or
    /// texts, whatever the type's keys are.
    mutating func next() throws -> [Value]?
}

/// What one column of a source holds.
public enum ImportColumn: Hashable, Sendable {
    /// The record's given id.
    case key
    /// An attribute.
    case attribute(Attribute)
    /// An attribute holding the given id of a record of another type, or of the same.
    case reference(Attribute, Reference)

    /// The column's name; nil for the key.
    var name: String? {
        switch self {
        case .key: nil
        case .attribute(let attribute), .reference(let attribute, _): attribute.name
        }
    }
}

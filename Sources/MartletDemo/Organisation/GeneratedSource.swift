import MartletModel
import MartletTransfer

/// A generated table as a source of records to import.
struct GeneratedSource: ImportSource {
    let table: GeneratedTable
    let label: String

    var type: String { table.type }

    func open(_ type: EntityType) throws -> any ImportCursor {
        let columns = try table.columns.map { name -> ImportColumn in
            if name == type.key { return .key }
            guard let attribute = type[attribute: name] else {
                throw TransferError("\(type.name) has no attribute \(name) to import into.")
            }
            guard let reference = type.reference(of: name) else { return .attribute(attribute) }
            return .reference(attribute, reference)
        }
        return GeneratedCursor(columns: columns, rows: table.rows, label: label)
    }
}

private struct GeneratedCursor: ImportCursor {
    let columns: [ImportColumn]
    let rows: [[Value]]
    let label: String
    var line = 0

    /// A hash of the seed and the size, which determine the content.
    var fingerprint: UInt64 {
        label.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }

    mutating func next() throws -> [Value]? {
        guard line < rows.count else { return nil }
        line += 1
        return rows[line - 1]
    }
}

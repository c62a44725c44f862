import MartletModel
import MartletProtocol

/// Cuts the records of one external transaction into parts that fit one entry each.
package enum EntryParts {
    /// Returns the parts in order; one part if all records fit.
    ///
    /// - Parameter bytes: Returns the approximate bytes of an encoded record.
    package static func of<Record>(
        _ records: [Record], bytes: (Record) -> Int
    ) -> [Range<Int>] {
        var parts: [Range<Int>] = []
        var start = 0
        var sum = 0
        for (index, record) in records.enumerated() {
            let count = bytes(record)
            if index > start, sum + count > Limits.entryBytes - Limits.requestHeadBytes {
                parts.append(start..<index)
                start = index
                sum = 0
            }
            sum += count
        }
        parts.append(start..<records.count)
        return parts
    }
}

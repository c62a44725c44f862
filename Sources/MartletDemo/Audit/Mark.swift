import Martlet
import MartletDevice
import MartletModel

/// The marks in the demo's saves: `mark-DEMO-DEVICE-NUMBER;`, alone or at the end of a text.
enum Mark {
    static let start = "mark-"

    /// Returns the mark in a value; nil if there is none.
    static func find(_ value: SQLValue) -> String? {
        guard case .text(let text) = value, text.utf8.last == UInt8(ascii: ";"),
            let range = text.firstRange(of: start)
        else { return nil }
        return String(text[range.lowerBound...])
    }

    /// Returns the marks in a parked set's own edits.
    static func all(in set: ParkedSet) -> Set<String> {
        Set(set.changes.flatMap { $0.mine?.values.compactMap(find) ?? [] })
    }
}

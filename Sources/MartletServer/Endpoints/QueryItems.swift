internal import Foundation
internal import MartletModel
internal import MartletProtocol

/// The query of an address, read strictly: each name occurs once, and no unknown name does.
struct QueryItems {
    private var items: [String: String] = [:]

    /// Reads a query.
    ///
    /// - Throws: `Problem` if a name occurs twice or is not among `names`, or the encoding is
    ///   broken.
    init(_ query: String?, names: Set<String>) throws(Problem) {
        guard let query, !query.isEmpty else { return }
        for part in query.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = String(pair[0]).removingPercentEncoding,
                let value = pair.count > 1 ? String(pair[1]).removingPercentEncoding : ""
            else { throw Problem.malformed("The query's percent-encoding is broken.") }
            guard names.contains(name) else {
                throw Problem.malformed(
                    "The query's “\(name.prefix(24))” means nothing here; it may have"
                        + " \(names.sorted().joined(separator: ", ")).")
            }
            guard items.updateValue(value, forKey: name) == nil else {
                throw Problem.malformed("“\(name)” stands twice in the query.")
            }
        }
    }

    /// Returns a text of 1 to `Limits.nameBytes` bytes; nil if the query does not have it.
    func name(_ name: String, most: Int = Limits.nameBytes) throws(Problem) -> String? {
        guard let value = items[name] else { return nil }
        guard 1...most ~= value.utf8.count else {
            throw Problem.malformed("“\(name)” is empty or longer than \(most) bytes.")
        }
        return value
    }

    /// Returns an integer in a range; nil if the query does not have it.
    func integer(_ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let value = items[name] else { return nil }
        guard let number = Int64(value), range.contains(number) else {
            throw Problem.malformed(
                "“\(name)” is an integer of \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }
}

internal import Foundation
internal import MartletModel
internal import MartletProtocol

/// The query of an address, read strictly: each name once, nothing that is not asked for.
struct QueryItems {
    private var items: [String: String] = [:]

    /// - Throws: `Problem` for a name that stands twice or is not among `names`.
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

    /// A text of 1 to `Limits.nameBytes` bytes; nil where it is not given.
    func name(_ name: String) throws(Problem) -> String? {
        guard let value = items[name] else { return nil }
        guard 1...Limits.nameBytes ~= value.utf8.count else {
            throw Problem.malformed("“\(name)” is empty or longer than \(Limits.nameBytes) bytes.")
        }
        return value
    }

    /// An integer in a range; nil where it is not given.
    func integer(_ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let value = items[name] else { return nil }
        guard let number = Int64(value), range.contains(number) else {
            throw Problem.malformed(
                "“\(name)” is an integer of \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }
}

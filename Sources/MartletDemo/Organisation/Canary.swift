/// A text that only one record has. A file that holds it has, or had, this record.
enum Canary {
    /// The starts of canaries. A mark is one as well, because only one record has it.
    static let starts = ["canary-", "mark-"].map { [UInt8]($0.utf8) }
    private static let end = UInt8(ascii: ";")
    private static let longest = 80

    /// Returns the canary of a generated record.
    static func text(_ type: String, _ id: Int) -> String { "canary-\(type)-\(id);" }

    /// Returns the canaries in the bytes of a text or of a file.
    /// - Complexity: O(*n*).
    static func all(in bytes: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        for index in bytes.indices where bytes[index] == end {
            let room = bytes[max(0, index - longest)...index]
            for start in starts {
                guard let first = last(start, in: room) else { continue }
                found.insert(String(decoding: room[first...], as: UTF8.self))
            }
        }
        return found
    }

    /// Returns the index at which a word last begins.
    private static func last(_ word: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
        var index = bytes.endIndex - word.count
        while index >= bytes.startIndex {
            if bytes[index] == word[0], bytes[index...].starts(with: word) { return index }
            index -= 1
        }
        return nil
    }
}

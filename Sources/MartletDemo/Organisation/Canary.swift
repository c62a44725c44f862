/// A text that only one record has. A file that holds it has, or had, this record.
enum Canary {
    /// The starts of canaries. A mark is one as well, because only one record has it.
    private static let starts = ["canary-", "mark-"].map { [UInt8]($0.utf8) }
    private static let end = UInt8(ascii: ";")
    private static let longest = 80

    /// Returns the canary of a generated record.
    static func text(_ type: String, _ id: Int) -> String { "canary-\(type)-\(id);" }

    /// Returns the canaries in a text.
    static func all(in text: String) -> Set<String> { all(in: [UInt8](text.utf8)) }

    /// Returns the canaries in the bytes of a file.
    /// - Complexity: O(*n*).
    static func all(in bytes: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        var first = 0
        for index in bytes.indices where bytes[index] == end {
            let room = bytes[max(first, index - longest)..<index]
            if let start = starts.compactMap({ last($0, in: room) }).max() {
                found.insert(String(decoding: bytes[start...index], as: UTF8.self))
            }
            first = index + 1
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

internal import MartletModel

/// The texts by which the records of a world with policies are told apart wherever they are: each edit
/// writes a text of its own, as `t12e0z` or, on the server's file, `o12e0z`.
enum Canaries {
    /// Returns the text of an edit of a save.
    static func text(_ token: String, edit: Int) -> String { "\(token)e\(edit)z" }

    /// Returns the texts that stand in bytes.
    static func found(in bytes: some Collection<UInt8>) -> Set<String> {
        var found: Set<String> = []
        var text: [UInt8] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "t"), UInt8(ascii: "o"): text = [byte]
            case UInt8(ascii: "0")...UInt8(ascii: "9") where !text.isEmpty: text.append(byte)
            case UInt8(ascii: "e") where isNumbered(text) && !text.contains(byte): text.append(byte)
            case UInt8(ascii: "z") where isNumbered(text) && text.contains(UInt8(ascii: "e")):
                found.insert(String(decoding: text + [byte], as: UTF8.self))
                text = []
            default: text = []
            }
        }
        return found
    }

    private static func isNumbered(_ text: [UInt8]) -> Bool {
        text.last.map { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ?? false
    }

    /// Returns the texts in the values of a record.
    static func found(in record: [String: Value]) -> Set<String> {
        record.values.reduce(into: Set()) { found, value in
            if case .text(let text) = value { found.formUnion(Self.found(in: text.utf8)) }
        }
    }
}

/// The name of a data set, which is also the name of its file.
public enum DataSetName {
    /// Returns whether `name` can be a data set's: 1 to 64 of a–z, 0–9, “.”, “_” and “-”, without a
    /// leading dot, and neither “tokens” nor “martlet”.
    public static func isValid(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...64).contains(bytes.count), bytes.first != UInt8(ascii: ".") else {
            return false
        }
        // The server's own files are in the same folder.
        guard name != "tokens", name != "martlet" else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    /// Checks a name.
    ///
    /// - Throws: `ServerFailure`, which states the rule, if it is not valid.
    static func check(_ name: String) throws(ServerFailure) {
        guard isValid(name) else {
            throw ServerFailure(
                """
                A data set's name is 1 to 64 of a-z, 0-9, “.”, “_” and “-”, does not start with a \
                dot, and is not “tokens” or “martlet”.
                """)
        }
    }
}

/// Checks the names of files in a `FileStore`.
enum FileName {
    /// The maximum bytes of a name in UTF-8; ext4, APFS and most other file systems have this
    /// limit.
    static let longest = 255

    /// Refuses a name that would lead out of the folder, hide in it, or cause trouble in other
    /// programs.
    /// - Throws: `StoreError` `.value`.
    static func check(_ name: String) throws(StoreError) {
        guard !name.isEmpty, name.utf8.count <= longest else {
            throw StoreError(
                .value,
                "A file's name has 1 to \(longest) bytes of UTF-8; this one has"
                    + " \(name.utf8.count). Use a shorter one.")
        }
        guard name.utf8.first != UInt8(ascii: ".") else {
            throw StoreError(
                .value,
                "A file's name does not begin with “.”; this one does. Put something"
                    + " before it.")
        }
        guard !name.utf8.contains(UInt8(ascii: "/")) else {
            throw StoreError(
                .value, "A file's name has no “/”; this one has. All files lie in one folder.")
        }
        guard name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f }) else {
            throw StoreError(
                .value, "A file's name has no control characters; this one has. Leave them out.")
        }
    }
}

internal import Foundation

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// The user and the group to which a file belongs.
struct FileOwner: Equatable {
    let user: UInt32
    let group: UInt32

    /// Reads the owner of a file; nil if the file does not exist.
    init?(of path: String) {
        guard let facts = try? FileManager.default.attributesOfItem(atPath: path),
            let user = (facts[.ownerAccountID] as? NSNumber)?.uint32Value,
            let group = (facts[.groupOwnerAccountID] as? NSNumber)?.uint32Value
        else { return nil }
        self.user = user
        self.group = group
    }

    /// Gives a file to the owner of its folder if this process has made it. A command that root
    /// runs thus leaves no file that the server cannot open.
    static func assign(_ path: String, in directory: String) {
        guard let owner = FileOwner(of: directory), FileOwner(of: path)?.user == geteuid() else {
            return
        }
        try? owner.take(path)
    }

    /// Gives a file to this owner, unless it belongs to it already.
    ///
    /// - Throws: `ServerFailure` if this user may not do that.
    func take(_ path: String) throws {
        guard let now = FileOwner(of: path), now != self else { return }
        do {
            try FileManager.default.setAttributes(
                [
                    .ownerAccountID: NSNumber(value: user),
                    .groupOwnerAccountID: NSNumber(value: group),
                ], ofItemAtPath: path)
        } catch {
            throw ServerFailure(
                """
                “\(path)” cannot be given to the user \(user), whose folder it is in; run this as \
                that user, or as root.
                """)
        }
    }
}

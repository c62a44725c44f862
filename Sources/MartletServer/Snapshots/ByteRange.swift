/// The supported form of a `Range` header: one range of bytes (RFC 9110 §14.1.2).
enum ByteRange {
    /// The bytes to send of a file of `count` bytes.
    enum Answer: Hashable {
        case whole
        case part(Range<Int64>)
        /// The range has no bytes of the file.
        case unsatisfiable
    }

    /// Returns the answer to a header. A header that is not understood, or that asks for several
    /// ranges, gets the whole file, as the standard allows.
    static func answer(to header: String?, count: Int64) -> Answer {
        guard let header, header.lowercased().hasPrefix("bytes=") else { return .whole }
        let ends = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
            .map { $0.filter { $0 != " " && $0 != "\t" } }
        guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { (48...57).contains($0) } })
        else { return .whole }
        switch (Int64(ends[0]), Int64(ends[1])) {
        case (let first?, nil) where ends[1].isEmpty:
            return first < count ? .part(first..<count) : .unsatisfiable
        case (let first?, let last?) where first <= last:
            return first < count ? .part(first..<(min(last, count - 1) + 1)) : .unsatisfiable
        case (nil, let length?) where ends[0].isEmpty:
            return length > 0 && count > 0 ? .part(max(0, count - length)..<count) : .unsatisfiable
        default:
            return .whole
        }
    }
}

/// The bytes of a device's files, in which canaries are looked for.
struct DeviceBytes {
    /// The canaries in the files.
    private(set) var canaries: Set<String> = []
    /// The canaries that are nowhere but in the free space of a page of the database: SQLite leaves copies
    /// of rows there when it splits or joins pages, and no query reads them.
    private(set) var copies: Set<String> = []

    init(_ files: [[UInt8]]) {
        for bytes in files {
            let pages = Pages(of: bytes)
            for range in Canary.ranges(in: bytes) {
                let text = String(decoding: bytes[range], as: UTF8.self)
                if pages?.isFree(range, in: bytes) == true {
                    copies.insert(text)
                } else {
                    canaries.insert(text)
                }
            }
        }
        copies.subtract(canaries)
    }

    /// The layout of a database or of its write-ahead log (https://sqlite.org/fileformat2.html).
    private struct Pages {
        /// The position of the first page, and the number of bytes from one to the next.
        let start: Int
        let stride: Int

        private static let magic = [UInt8]("SQLite format 3".utf8)
        private static let (logHeader, frameHeader) = (32, 24)

        init?(of bytes: [UInt8]) {
            guard bytes.count > Self.logHeader else { return nil }
            if bytes.starts(with: Self.magic) {
                let size = Self.number(bytes, 16)
                (start, stride) = (0, size == 1 ? 65_536 : size)
            } else if bytes.starts(with: [0x37, 0x7F, 0x06]) {
                start = Self.logHeader + Self.frameHeader
                stride = Self.number(bytes, 8) << 16 + Self.number(bytes, 10) + Self.frameHeader
            } else {
                return nil
            }
            guard stride > 0 else { return nil }
        }

        /// Returns whether bytes lie between the cell pointers and the cells of a page of a b-tree.
        func isFree(_ range: Range<Int>, in bytes: [UInt8]) -> Bool {
            guard range.lowerBound >= start else { return false }
            let page = start + (range.lowerBound - start) / stride * stride
            // The first page begins with the header of the database.
            let header = bytes[page...].starts(with: Self.magic) ? page + 100 : page
            let pointers: Int
            switch bytes[header] {
            case 10, 13: pointers = header + 8
            case 2, 5: pointers = header + 12
            default: return false
            }
            let content = Self.number(bytes, header + 5)
            return range.lowerBound >= pointers + 2 * Self.number(bytes, header + 3)
                && range.upperBound <= page + (content == 0 ? 65_536 : content)
        }

        private static func number(_ bytes: [UInt8], _ index: Int) -> Int {
            Int(bytes[index]) << 8 | Int(bytes[index + 1])
        }
    }
}

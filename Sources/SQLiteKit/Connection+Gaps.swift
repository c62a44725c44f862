internal import CSQLite

extension Connection {
    /// The outcome of a step of `overwriteGaps`.
    public enum GapStep: Hashable, Sendable {
        /// The next step begins at this page.
        case next(page: Int64)
        /// Every page is done.
        case done
        /// The write-ahead log has pages, so those of the file may be old. Nothing was done.
        case logIsUsed
        /// The pages are encrypted or have bytes for an extension, or the file is not in WAL mode. Nothing was
        /// done.
        case otherFormat
    }

    /// Overwrites bytes of pages that hold nothing: those between the pointers to cells and the cells, and
    /// those of free blocks (https://sqlite.org/fileformat2.html#b_tree_pages), and free pages
    /// (https://sqlite.org/fileformat2.html#the_freelist).
    ///
    /// When SQLite splits or joins pages, it leaves copies of cells there, which `PRAGMA secure_delete` does
    /// not overwrite. A program without this setting leaves what it deletes.
    ///
    /// Call it on a file in WAL mode, in a transaction that may write and has not yet. Change something in the
    /// same transaction: other connections then read the pages again before they write them.
    ///
    /// It writes to the file directly. Nobody reads these bytes, so a crash in the middle harms nothing. The
    /// first page is left as it is.
    ///
    /// - Parameters:
    ///   - page: The first page of the step, from 1.
    ///   - count: The pages of the step.
    /// - Throws: `SQLiteError` if the file cannot be read or written; `isCorrupt` if the list of its free pages
    ///   is damaged.
    /// - Complexity: O(`count` + *f* / *n*), *f* free pages, whose numbers are listed in pages of *n*.
    public func overwriteGaps(from page: Int64, count: Int64) throws(SQLiteError) -> GapStep {
        guard let file = rawFile(SQLITE_FCNTL_FILE_POINTER),
            let log = rawFile(SQLITE_FCNTL_JOURNAL_POINTER)
        else { return .otherFormat }
        guard try size(of: log) == 0 else { return .logIsUsed }
        // Copies in memory would bring the bytes back with the next change of their pages.
        sqlite3_db_release_memory(handle.pointer)
        guard let layout = PageLayout(try read(file, at: 0, count: PageLayout.headerBytes)) else {
            return .otherFormat
        }
        let pages = min(layout.pages, try size(of: file) / Int64(layout.pageBytes))
        let end = min(page + count, pages + 1)
        let step = max(page, 2)..<max(page, 2, end)
        let free = try freePages(of: file, layout, in: step)
        var hasWritten = false
        for number in step where layout.mayHaveGap(number) {
            let offset = layout.offset(of: number)
            let bytes = try read(file, at: offset, count: layout.pageBytes)
            let unused =
                free[number].map { [$0..<layout.pageBytes] } ?? PageLayout.unused(in: bytes)
            for gap in unused where bytes[gap].contains(where: { $0 != 0 }) {
                try overwrite(file, at: offset + Int64(gap.lowerBound), count: gap.count)
                hasWritten = true
            }
        }
        if hasWritten { try check(file.pointee.pMethods.pointee.xSync(file, SQLITE_SYNC_FULL)) }
        return end > pages ? .done : .next(page: end)
    }

    /// Reads the list of free pages.
    /// - Parameter step: The pages that the caller asks for.
    /// - Returns: Those of them that are free, each with the position from which it holds nothing. A page that
    ///   lists others holds their numbers.
    private func freePages(
        of file: RawFile, _ layout: PageLayout, in step: Range<Int64>
    ) throws(SQLiteError) -> [Int64: Int] {
        var free: [Int64: Int] = [:]
        var isSound = true
        var left = layout.freePages
        func add(_ page: Int64, _ start: Int) {
            left -= 1
            if page < 2 || page > layout.pages || !layout.mayHaveGap(page) { isSound = false }
            if step.contains(page), free.updateValue(start, forKey: page) != nil { isSound = false }
        }
        var trunk = layout.firstFreePage
        while trunk != 0, isSound, left > 0 {
            guard trunk >= 2, trunk <= layout.pages else { break }
            let bytes = try read(file, at: layout.offset(of: trunk), count: layout.pageBytes)
            let count = Int(PageLayout.longNumber(bytes, 4))
            let start = 8 + 4 * count
            guard start <= layout.pageBytes else { break }
            add(trunk, start)
            for position in stride(from: 8, to: start, by: 4) {
                add(PageLayout.longNumber(bytes, position), 0)
            }
            trunk = PageLayout.longNumber(bytes, 0)
        }
        // A page that is free and in use would lose its content.
        guard isSound, left == 0, trunk == 0 else {
            throw SQLiteError(
                extendedCode: SQLITE_CORRUPT, message: "the list of its free pages is wrong")
        }
        return free
    }

    private typealias RawFile = UnsafeMutablePointer<sqlite3_file>

    /// Returns SQLite's own handle of an open file; nil if there is none.
    private func rawFile(_ operation: Int32) -> RawFile? {
        var file: RawFile?
        let code = sqlite3_file_control(handle.pointer, "main", operation, &file)
        guard code == SQLITE_OK, let file, file.pointee.pMethods != nil else { return nil }
        return file
    }

    private func size(of file: RawFile) throws(SQLiteError) -> Int64 {
        var size: sqlite3_int64 = 0
        try check(file.pointee.pMethods.pointee.xFileSize(file, &size))
        return size
    }

    private func read(
        _ file: RawFile, at offset: Int64, count: Int
    ) throws(SQLiteError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let code = file.pointee.pMethods.pointee.xRead(file, &bytes, Int32(count), offset)
        try check(code)
        return bytes
    }

    private func overwrite(
        _ file: RawFile, at offset: Int64, count: Int
    ) throws(SQLiteError) {
        let zeros = [UInt8](repeating: 0, count: count)
        try check(file.pointee.pMethods.pointee.xWrite(file, zeros, Int32(count), offset))
    }

    private func check(_ code: Int32) throws(SQLiteError) {
        guard code == SQLITE_OK else {
            throw SQLiteError(
                extendedCode: code, message: "bytes that hold nothing cannot be overwritten")
        }
    }
}

/// The layout of a database file's pages (https://sqlite.org/fileformat2.html).
struct PageLayout {
    static let headerBytes = 100

    let pageBytes: Int
    let pages: Int64
    /// The number of pages that hold nothing.
    let freePages: Int64
    /// The first page that lists free pages; 0 if there are none.
    let firstFreePage: Int64
    private let hasPointerMaps: Bool

    /// Reads a file's header; nil if the file is not in WAL mode, or has pages in another format.
    init?(_ header: [UInt8]) {
        guard header.count == Self.headerBytes,
            header.starts(with: Array("SQLite format 3\0".utf8)),
            header[18] == 2, header[20] == 0
        else { return nil }
        let stored = Self.number(header, 16)
        pageBytes = stored == 1 ? 65_536 : stored
        guard pageBytes >= 512, pageBytes.nonzeroBitCount == 1 else { return nil }
        pages = Self.longNumber(header, 28)
        (firstFreePage, freePages) = (Self.longNumber(header, 32), Self.longNumber(header, 36))
        // Overflow pages and free pages begin with the number of a page. Its first byte is then that of no b-tree.
        guard pages < 1 << 24 else { return nil }
        hasPointerMaps = Self.number(header, 52) != 0 || Self.number(header, 54) != 0
    }

    /// Returns the position of a page in the file.
    func offset(of page: Int64) -> Int64 { (page - 1) * Int64(pageBytes) }

    /// Returns whether a page is neither one of pointers to parents, nor the one of SQLite's locks.
    func mayHaveGap(_ page: Int64) -> Bool {
        let locks = 0x4000_0000 / Int64(pageBytes) + 1
        guard page != locks else { return false }
        guard hasPointerMaps else { return true }
        let entries = Int64(pageBytes / 5) + 1
        var map = (page - 2) / entries * entries + 2
        if map == locks { map += 1 }
        return page != map
    }

    /// Returns the bytes of a page of a b-tree that hold nothing: those in front of the cells, and those of
    /// free blocks. Empty for a page that is none.
    static func unused(in page: [UInt8]) -> [Range<Int>] {
        let header: Int
        switch page[0] {
        case 2, 5: header = 12
        case 10, 13: header = 8
        default: return []
        }
        let cells = number(page, 3)
        let start = header + 2 * cells
        let content = number(page, 5) == 0 ? 65_536 : number(page, 5)
        guard start <= content, content <= page.count else { return [] }
        for cell in 0..<cells {
            let position = number(page, header + 2 * cell)
            guard position >= content, position < page.count else { return [] }
        }
        var unused = [start..<content]
        var end = content
        var block = number(page, 1)
        while block != 0 {
            // A block holds the position of the next one, and its own size.
            guard block >= end, block + 4 <= page.count else { return [] }
            end = block + number(page, block + 2)
            guard end >= block + 4, end <= page.count else { return [] }
            unused.append(block + 4..<end)
            block = number(page, block)
        }
        return unused
    }

    /// Returns the number that four bytes hold.
    static func longNumber(_ bytes: [UInt8], _ offset: Int) -> Int64 {
        Int64(number(bytes, offset) << 16 | number(bytes, offset + 2))
    }

    private static func number(_ bytes: [UInt8], _ offset: Int) -> Int {
        Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }
}

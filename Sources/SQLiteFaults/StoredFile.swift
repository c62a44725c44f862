/// A file of a simulated disk: the content that programs read now, the content that a crash would
/// leave, and the changes between the two, in order.
///
/// Both contents share arrays of 4 KiB until one changes, so that neither a sync nor a crash copies
/// a whole file.
final class StoredFile {
    enum Change {
        case write(offset: Int, bytes: [UInt8])
        case truncate(size: Int)
    }

    static let chunkSize = 4_096
    /// The number of bytes that a disk writes as one. A larger write may be torn.
    static let sectorSize = 512

    /// Whether it is a file without a name, which no crash keeps and whose changes are therefore
    /// not noted.
    let isTemporary: Bool
    private(set) var size = 0
    private var chunks: [[UInt8]] = []
    private var durableSize = 0
    private var durableChunks: [[UInt8]] = []
    /// The chunks that may differ from the durable ones. A chunk may be listed twice.
    private var dirty: [Int] = []
    /// The changes since the last sync, each with its number among all changes of the disk.
    private(set) var pending: [(number: Int, change: Change)] = []

    /// The open handles, for their locks. Closing removes a handle.
    var handles: [FileHandle] = []
    var sharedMemory: SharedMemory?

    init(isTemporary: Bool) {
        self.isTemporary = isTemporary
    }

    /// Creates a file with these bytes, all durable.
    init(bytes: [UInt8]) {
        isTemporary = false
        bytes.withUnsafeBytes { put($0, at: 0) }
        sync()
    }

    var contents: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(chunks.count * Self.chunkSize)
        for chunk in chunks { bytes.append(contentsOf: chunk) }
        bytes.removeLast(bytes.count - size)
        return bytes
    }

    // MARK: - Reading and changing

    /// Copies bytes to `target`. Bytes beyond the end are zero. Returns the number of bytes that
    /// the file has.
    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
        let count = min(target.count, max(0, size - offset))
        var done = 0
        while done < count {
            let position = offset + done
            let within = position % Self.chunkSize
            let part = min(count - done, Self.chunkSize - within)
            chunks[position / Self.chunkSize].withUnsafeBytes { chunk in
                UnsafeMutableRawBufferPointer(rebasing: target[done..<(done + part)])
                    .copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: chunk[within..<(within + part)]))
            }
            done += part
        }
        if count < target.count {
            target[count...].initializeMemory(as: UInt8.self, repeating: 0)
        }
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, number: Int) {
        note(.write(offset: offset, bytes: isTemporary ? [] : Array(bytes)), number)
        put(bytes, at: offset)
    }

    func truncate(to size: Int, number: Int) {
        note(.truncate(size: size), number)
        cut(to: size)
    }

    /// Notes a change that a crash interrupted. The program never sees it, and the disk may have
    /// it.
    func note(_ change: Change, _ number: Int) {
        if !isTemporary { pending.append((number, change)) }
    }

    /// Makes all changes so far durable, in time proportional to the changes.
    func sync() {
        if durableChunks.count > chunks.count {
            durableChunks.removeLast(durableChunks.count - chunks.count)
        } else {
            durableChunks.append(contentsOf: chunks[durableChunks.count...])
        }
        for index in dirty where index < chunks.count {
            durableChunks[index] = chunks[index]
        }
        durableSize = size
        dirty.removeAll(keepingCapacity: true)
        pending.removeAll(keepingCapacity: true)
    }

    private func put(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        grow(to: offset + bytes.count)
        var done = 0
        while done < bytes.count {
            let position = offset + done
            let index = position / Self.chunkSize
            let within = position % Self.chunkSize
            let part = min(bytes.count - done, Self.chunkSize - within)
            let source = UnsafeRawBufferPointer(rebasing: bytes[done..<(done + part)])
            if part == Self.chunkSize {
                chunks[index] = Array(source)
            } else {
                chunks[index].withUnsafeMutableBytes { chunk in
                    UnsafeMutableRawBufferPointer(rebasing: chunk[within..<(within + part)])
                        .copyMemory(from: source)
                }
            }
            markDirty(index)
            done += part
        }
    }

    private func grow(to size: Int) {
        guard size > self.size else { return }
        self.size = size
        while chunks.count * Self.chunkSize < size {
            markDirty(chunks.count)
            chunks.append([UInt8](repeating: 0, count: Self.chunkSize))
        }
    }

    private func cut(to size: Int) {
        guard size < self.size else { return grow(to: size) }
        self.size = size
        let count = (size + Self.chunkSize - 1) / Self.chunkSize
        chunks.removeLast(chunks.count - count)
        // If the file grows again, these bytes must be zero.
        let within = size % Self.chunkSize
        if within > 0 {
            chunks[count - 1].replaceSubrange(
                within..., with: repeatElement(0, count: Self.chunkSize - within))
            markDirty(count - 1)
        }
    }

    private func markDirty(_ index: Int) {
        if !isTemporary, dirty.last != index { dirty.append(index) }
    }

    // MARK: - Crashing

    /// Returns the file as a crash leaves it.
    /// - Parameter keep: Returns the part of each change that has reached the disk. It is called in
    ///   the order of the changes.
    func survivor(_ keep: (_ number: Int, _ change: Change) -> Kept) -> StoredFile {
        let file = StoredFile(isTemporary: false)
        file.chunks = durableChunks
        file.size = durableSize
        for (number, change) in pending {
            switch (change, keep(number, change)) {
            case (_, .none): break
            case (.truncate(let size), _): file.cut(to: size)
            case (.write(let offset, let bytes), .all):
                bytes.withUnsafeBytes { file.put($0, at: offset) }
            case (.write(let offset, let bytes), .sectors(let isKept)):
                bytes.withUnsafeBytes { bytes in
                    for (index, range) in Self.sectors(of: bytes.count, at: offset).enumerated()
                    where isKept[index] {
                        file.put(
                            UnsafeRawBufferPointer(rebasing: bytes[range]),
                            at: offset + range.lowerBound)
                    }
                }
            }
        }
        file.dirty = Array(file.chunks.indices)
        file.sync()
        return file
    }

    enum Kept {
        case none
        case all
        /// One flag for each sector that the write touches.
        case sectors([Bool])
    }

    /// Returns the parts of a write that fall into different sectors.
    static func sectors(of count: Int, at offset: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        while start < count {
            let end = min(count, start + sectorSize - (offset + start) % sectorSize)
            ranges.append(start..<end)
            start = end
        }
        return ranges
    }
}

/// Result codes of SQLite that Swift does not import, because they are expressions in C.
enum ResultCode {
    private static func inputOutput(_ detail: Int32) -> Int32 { 10 | detail << 8 }

    static let read = inputOutput(1)
    static let shortRead = inputOutput(2)
    static let write = inputOutput(3)
    static let sync = inputOutput(4)
    static let truncate = inputOutput(6)
    static let fileSize = inputOutput(7)
    static let delete = inputOutput(10)
    static let access = inputOutput(13)
    static let lock = inputOutput(15)
    static let sharedMemoryLock = inputOutput(20)
    static let sharedMemoryMap = inputOutput(21)
}

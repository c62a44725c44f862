internal import SystemKit

/// The folder of stored state. It is opened for each call, so it may be removed and created again
/// between two calls.
struct StateFolder: Sendable {
    let path: String
    let faults: FileFaults?
    /// Throws if the folder must not be used as it is.
    var check: @Sendable (FileFacts) throws -> Void = { _ in }
    private var isSwept = false

    init(path: String, faults: FileFaults?) {
        self.path = path
        self.faults = faults
    }

    /// Runs `body` on the folder as it is; returns nil if it does not exist.
    func existing<Result>(_ body: (borrowing Folder) throws -> Result?) throws -> Result? {
        try translated {
            let folder: Folder
            do {
                folder = try Folder(path: path, faults: faults)
            } catch let error as SystemError where error.isMissing {
                return nil
            }
            try check(try folder.facts())
            return try body(folder)
        }
    }

    /// Runs `body` on the folder, and creates it if it is missing. The first call removes
    /// half-written files of killed processes.
    mutating func made<Result>(_ body: (borrowing Folder) throws -> Result) throws -> Result {
        let isFirst = !isSwept
        let result = try translated {
            try Folder.make(path: path, faults: faults)
            let folder = try Folder(path: path, faults: faults)
            try check(try folder.facts())
            if isFirst { try folder.removeAbandonedFiles() }
            return try body(folder)
        }
        isSwept = true
        return result
    }

    private func translated<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let error as SystemError {
            throw StoreError(error)
        }
    }
}

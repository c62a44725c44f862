package import SystemKit

extension StoreError {
    /// Creates a store's error from an error of the operating system.
    package init(_ error: SystemError) {
        let (kind, sentence) = Self.judged(error)
        self.init(kind, sentence)
    }

    private static func judged(_ error: SystemError) -> (Kind, String) {
        if error.isMissing {
            return (.unknown, "There is no such file or folder. Check the name and the path.")
        }
        if error.isDiskFull {
            return (.diskFull, "There is no room left on the disk. Make room, then try again.")
        }
        if error.isReadOnly {
            return (.readOnly, "Nothing can be written there. Use a place that can be written to.")
        }
        if error.isNotPermitted {
            return (
                .inputOutput,
                "This user may not \(error.operation). Change the rights, or use another place."
            )
        }
        if error.isNotAFolder {
            return (.file, "A file stands where a folder is needed. Use another path.")
        }
        if error.isNotAFile {
            return (.file, "A folder or a link stands where a file is needed. Remove it.")
        }
        if error.isNameTooLong {
            return (.value, "The file system takes no name as long as that. Use a shorter one.")
        }
        if error.isCancelled {
            return (.cancelled, "The task was cancelled, and nothing was changed.")
        }
        return (
            .inputOutput,
            "The system could not \(error.operation) (error \(error.number)). Check the disk."
        )
    }
}

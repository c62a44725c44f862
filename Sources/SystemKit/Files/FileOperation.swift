/// A file operation of the operating system.
public enum FileOperation: String, Hashable, Sendable, CaseIterable {
    case makeFolder = "make a folder"
    case openFolder = "open a folder"
    case list = "list a folder"
    case create = "create a file"
    case open = "open a file"
    case inspect = "look at a file"
    case read = "read a file"
    case write = "write a file"
    case synchronize = "bring a file to the disk"
    case rename = "rename a file"
    case remove = "remove a file"
}

extension FileOperation: CustomStringConvertible {
    public var description: String { rawValue }
}

internal import CLibevent

/// The operating system's limit on the files and sockets that the process may have open.
public enum DescriptorLimit {
    /// Raises the limit as far as the process may, and returns it; nil if there is none.
    public static func raised() -> Int? {
        _ = martlet_raise_descriptor_limit()
        let limit = martlet_descriptor_limit()
        return limit < 0 ? nil : limit
    }
}

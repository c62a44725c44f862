internal import MartletModel
internal import MartletProtocol

extension DeviceNode {
    /// The device's waits and limits.
    package struct Options: Sendable {
        /// Milliseconds without a byte in either direction after which an exchange has failed.
        package var exchangeTimeout: Int64 = 120_000
        /// Milliseconds after which a device that stopped until a person acts asks again.
        package var haltRetry: Int64 = 900_000
        /// Milliseconds that a save waits at most for the next try, whatever the current wait.
        package var saveRetry: Int64 = 60_000
        /// Milliseconds between exchanges when nothing happens; nil to exchange only when woken.
        package var pollInterval: Int64?
        /// Whether to keep a stream of deltas open, which brings changes at once. While it is open,
        /// the device does not poll.
        package var isLive = false
        /// Milliseconds after which the device tries again to open a stream that the server did not
        /// have.
        package var streamRetry: Int64 = 600_000
        /// Milliseconds after which an open stream counts as sound even if it brought nothing. This
        /// is longer than a silent stream is kept.
        package var steadyStream: Int64 = 60_000
        /// The most milliseconds by which a stream may be late before the device also polls.
        package var heldBack: Int64 = 10_000
        /// Whether a device without any data begins with a snapshot, if the server has one.
        package var usesSnapshots = false
        /// The waits between failed tries.
        package var backoff = Backoff()
        /// Milliseconds. After an exchange that took no longer, the device doubles the bytes of the
        /// next one.
        package var quickExchange: Int64 = 5_000
        /// The number of records in one transaction while a large answer is applied.
        package var sliceRecords = 2_000
        /// The number of free pages that the file keeps; the device returns more than that while it
        /// is idle.
        package var freePages = 1_024
        /// The number of free pages that one transaction returns.
        package var pagesOfStep = 256
        /// The number of pages that one step of the removal of hidden records' bytes reads at first.
        package var sweptPages: Int64 = 1_024
        /// Bytes of change sets in one request, before compression.
        package var uploadBytes = Limits.uploadBytes
        /// The prefix of the name under which this device holds the file's lease.
        package var ownerPrefix = ""
        /// Returns whether the holder of a lease, given by its name, died without ending it.
        package var isOwnerGone: @Sendable (_ owner: String) -> Bool = { _ in false }

        /// Creates the default options.
        package init() {}
    }
}

internal import MartletModel
public import MartletProtocol
public import MartletServerCore

extension DataSetNode {
    /// - Parameters:
    ///   - cacheBytes: Memory for what of the log is held, about.
    ///   - answerBytes: Bytes of change sets after which an answer is cut.
    ///   - partBytes: The fewest bytes of rows after which part of a difference may end within a revision.
    /// - Throws: `StorageFault` when the log cannot be read.
    public convenience init(
        store: EmbeddedStore, rules: Rules = .everything,
        filter: VisibilityFilter = .everything, cacheBytes: Int = 64 << 20,
        answerBytes: Int = Limits.answerBytes, partBytes: Int = 64 << 10
    ) throws(StorageFault) {
        try self.init(
            storage: store,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            rules: rules,
            filter: filter, cacheBytes: cacheBytes, answerBytes: answerBytes, partBytes: partBytes)
    }
}

extension LogReader {
    /// - Parameter store: The data set's storage, for its place only; it is not touched.
    public convenience init(feed: DataSetFeed, store: EmbeddedStore) {
        self.init(
            feed: feed,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            check: EmbeddedCheck(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable))
    }

    /// Beside a node on the same thread: where a reader meets what other programs wrote and the log does
    /// not have, the node takes it in.
    package convenience init(node: DataSetNode, store: EmbeddedStore) {
        self.init(
            feed: node.feed,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            check: EmbeddedCheck(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            consistently: { (body) throws(StorageFault) in try node.whenCaughtUp(body) })
    }
}

internal import MartletModel
internal import MartletProtocol
package import MartletServerCore

extension DataSetNode {
    /// Makes the node of a data set in a file.
    ///
    /// ```swift
    /// let node = try DataSetNode(store: store)
    /// let results = node.process([request], now: now)
    /// ```
    ///
    /// - Parameters:
    ///   - cacheBytes: The approximate memory for the newest part of the log.
    ///   - answerBytes: The bytes of change sets after which an answer is cut.
    ///   - partBytes: The least bytes of rows after which a part of a difference may end within a
    ///     revision.
    /// - Throws: `StorageFault` if the log cannot be read.
    package convenience init(
        store: EmbeddedStore, rules: Rules = .everything, cacheBytes: Int = 64 << 20,
        answerBytes: Int = Limits.answerBytes, partBytes: Int = 64 << 10
    ) throws(StorageFault) {
        try self.init(
            storage: store,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            rules: rules, cacheBytes: cacheBytes, answerBytes: answerBytes, partBytes: partBytes)
    }
}

extension LogReader {
    /// Makes a reader of the log of a data set in a file.
    ///
    /// - Parameter store: The data set's storage. The reader takes only the path and the schema
    ///   from it.
    package convenience init(feed: DataSetFeed, store: EmbeddedStore) {
        self.init(
            feed: feed,
            log: EmbeddedLog(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable),
            check: EmbeddedCheck(
                path: store.path, vfs: store.vfs, schema: store.schema,
                unsendable: store.unsendable))
    }

    /// Makes a reader next to a node on the same thread. If there are external writes that the log
    /// does not have, the node takes them in.
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

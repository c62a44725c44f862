internal import ConnectionKit
internal import MartletModel
internal import MartletProtocol
internal import MartletRedis
internal import RedisKit
internal import Synchronization

/// The data sets' shared access to Redis: the address, the counters, and one connection that
/// listens for all of them.
final class RedisHub: Sendable {
    let counters = CacheCounters()
    private let address: RedisAddress
    private let log: ServerLog
    private let listeners = Mutex<[String: @Sendable (Revision) -> Void]>([:])
    private let listening = Mutex<Task<Void, Never>?>(nil)

    init(_ address: RedisAddress, log: ServerLog) {
        self.address = address
        self.log = log
    }

    /// Returns a connection for one user. It is made with the first command, or earlier by
    /// `RedisLink.connect()`.
    func link() -> RedisLink {
        RedisLink(address, counters: counters) { [log, address] error in
            Self.tell(error, address, log)
        }
    }

    /// Calls `heard` with the revisions that other processes announce of a data set, once `listen`
    /// was called.
    func follow(_ dataSet: String, heard: @escaping @Sendable (Revision) -> Void) {
        listeners.withLock { $0[dataSet] = heard }
    }

    /// Begins to listen. If Redis does not answer, the hub keeps trying.
    func listen() {
        let identities = listeners.withLock { $0.keys.sorted() }
        guard !identities.isEmpty else { return }
        listening.withLock { listening in
            guard listening == nil else { return }
            listening = Task { await self.listen(to: identities) }
        }
    }

    func stop() {
        listening.withLock { listening in
            listening?.cancel()
            listening = nil
        }
    }

    private func listen(to identities: [String]) async {
        var isLost = false
        while !Task.isCancelled {
            for await event in RevisionNotices.events(address, of: identities) {
                switch event {
                case .listening:
                    if isLost { Self.tell(nil, address, log) }
                    isLost = false
                    // Announcements in between were missed.
                    for identity in identities { tell(.max, of: identity) }
                case .notice(let notice): tell(notice.revision, of: notice.dataSet)
                case .lost(let error):
                    if !isLost { Self.tell(error as? RedisError, address, log) }
                    isLost = true
                }
            }
            // The operator may correct a wrong password in Redis.
            do { try await Task.sleep(for: .seconds(10)) } catch { return }
        }
    }

    private func tell(_ revision: Revision, of dataSet: String) {
        listeners.withLock { $0[dataSet] }?(revision)
    }

    private static func tell(_ error: RedisError?, _ address: RedisAddress, _ log: ServerLog) {
        guard let error else {
            return log.log(.info, "redis", [("state", .text("answers again"))])
        }
        log.log(
            .warning, "redis",
            [
                ("address", .text(address.description)), ("reason", .text(error.description)),
                ("remedy", .text(error.remedy)),
            ])
    }
}

internal import CHiredis
public import ConnectionKit

/// A connection to a Redis server. One thread at a time may use it.
///
/// Every call blocks, at most as long as the options say. Keep connections in a `KeptConnection`.
/// After an error whose `endsConnection` is true, the connection cannot be used any more: a late
/// answer would be taken for that of another command.
public final class RedisConnection: Connectable {
    private var context: UnsafeMutablePointer<redisContext>?
    public let wake: Wake
    public let options: RedisOptions
    private var deadline: Deadline?
    /// Whether SUBSCRIBE was sent. From then on, the server sends messages without a command.
    private var isListening = false

    /// Connects.
    /// - Throws: `RedisError`; its kind says what is wrong with the address or the server.
    public init(
        _ address: RedisAddress, _ options: RedisOptions = RedisOptions()
    ) throws(RedisError) {
        martlet_ignore_broken_pipes()
        self.options = options
        do {
            wake = try Wake()
        } catch {
            throw RedisError(.unreachable, "\(error)")
        }
        deadline = Deadline(after: options.connecting)
        guard let context = redisConnectNonBlock(address.host, Int32(address.port)) else {
            throw RedisError(.unreachable, "there is no memory for a connection")
        }
        self.context = context
        do {
            try connect(context)
            try greet(address)
        } catch {
            close()
            throw error
        }
    }

    deinit {
        close()
    }

    private func connect(_ context: UnsafeMutablePointer<redisContext>) throws(RedisError) {
        guard context.pointee.err == 0 else {
            throw RedisError(.unreachable, Self.words(context))
        }
        guard try wait(writing: true, .unreachable).contains(.writable) else {
            throw RedisError(.unreachable, "the connection was refused")
        }
        let code = martlet_socket_error(context.pointee.fd)
        guard code == 0 else {
            throw RedisError(.unreachable, "the server cannot be reached (errno \(code))")
        }
    }

    private func greet(_ address: RedisAddress) throws(RedisError) {
        var commands: [RedisCommand] = []
        if let password = address.password {
            commands.append(RedisCommand("AUTH", address.user ?? "default", password))
        }
        if address.database != 0 { commands.append(RedisCommand("SELECT", "\(address.database)")) }
        commands.append(RedisCommand("CLIENT", "SETNAME", options.name))
        for answer in try exchange(commands, until: deadline) {
            if case .error(let error) = answer { throw error }
        }
    }

    /// Whether the connection is known to be lost. The server is not asked.
    public var isLost: Bool { context == nil }

    /// Returns false if the connection is lost, is subscribed, or has something to read. A server
    /// sends nothing without a command, so this is its last message before it closes the
    /// connection.
    public func isUsable() -> Bool {
        guard let context, !isListening, martlet_unread(context) == 0 else { return false }
        let outcome = try? wake.wait(
            context.pointee.fd, reading: true, writing: false, until: Deadline(after: .zero),
            heedsSignals: false)
        return outcome?.isEmpty ?? false
    }

    /// Closes the connection.
    public func close() {
        if let context { redisFree(context) }
        context = nil
    }

    public static func mayPass(_ error: any Error) -> Bool {
        (error as? RedisError)?.mayPass ?? false
    }

    // MARK: - Commands

    /// Runs one command.
    /// - Throws: `RedisError`, also if the server refuses the command.
    public func command(_ command: RedisCommand) throws(RedisError) -> RedisValue {
        let answer = try pipeline([command])[0]
        if case .error(let error) = answer { throw error }
        return answer
    }

    /// Runs one command, given as texts.
    public func command(_ words: String...) throws(RedisError) -> RedisValue {
        try command(RedisCommand(words.map { [UInt8]($0.utf8) }))
    }

    /// Runs commands in one round trip.
    /// - Returns: An answer for each command, in their order; `.error` for a refused one.
    /// - Throws: `RedisError` if not all answers arrived.
    public func pipeline(_ commands: [RedisCommand]) throws(RedisError) -> [RedisValue] {
        guard !isListening else {
            throw RedisError(.misuse, "a connection that listens takes no commands")
        }
        return try exchange(commands, until: options.answer.map { Deadline(after: $0) })
    }

    private func exchange(
        _ commands: [RedisCommand], until deadline: Deadline?
    ) throws(RedisError) -> [RedisValue] {
        self.deadline = deadline
        try send(commands)
        var answers: [RedisValue] = []
        answers.reserveCapacity(commands.count)
        while answers.count < commands.count { answers.append(try reply()) }
        return answers
    }

    private func send(_ commands: [RedisCommand]) throws(RedisError) {
        let context = try open()
        for command in commands {
            guard Self.append(command, to: context) else {
                throw cut(.misuse, "a command could not be laid out")
            }
        }
        var isDone: Int32 = 0
        while isDone == 0 {
            guard redisBufferWrite(context, &isDone) == REDIS_OK else {
                throw cut(.lost, Self.words(context))
            }
            if isDone == 0 {
                // If a server cannot write its answers, it stops reading.
                let outcome = try wait(writing: true, .timedOut)
                if outcome.contains(.readable) { try read(context) }
            }
        }
    }

    private static func append(
        _ command: RedisCommand, to context: UnsafeMutablePointer<redisContext>
    ) -> Bool {
        var bytes: [UInt8] = []
        for word in command.words { bytes += word }
        bytes.append(0)
        return bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress?.assumingMemoryBound(to: CChar.self) else {
                return false
            }
            var pointers: [UnsafePointer<CChar>?] = []
            var start = 0
            for word in command.words {
                pointers.append(base.advanced(by: start))
                start += word.count
            }
            return redisAppendCommandArgv(
                context, Int32(command.words.count), &pointers, command.words.map(\.count))
                == REDIS_OK
        }
    }

    /// Reads the next reply.
    private func reply() throws(RedisError) -> RedisValue {
        while true {
            if let reply = try replyAtHand() { return reply }
            _ = try wait(writing: false, .timedOut)
            try read(try open())
        }
    }

    private func replyAtHand() throws(RedisError) -> RedisValue? {
        let context = try open()
        var found: UnsafeMutableRawPointer?
        guard redisGetReplyFromReader(context, &found) == REDIS_OK else {
            throw cut(.garbled, Self.words(context))
        }
        guard let found else { return nil }
        defer { freeReplyObject(found) }
        return RedisValue(UnsafePointer(found.assumingMemoryBound(to: redisReply.self)))
    }

    private func read(_ context: UnsafeMutablePointer<redisContext>) throws(RedisError) {
        guard redisBufferRead(context) == REDIS_OK else {
            throw cut(.lost, Self.words(context))
        }
        guard martlet_unread(context) <= options.longestReply else {
            throw cut(.garbled, "a reply is longer than \(options.longestReply) bytes")
        }
    }

    // MARK: - Messages

    /// Subscribes to channels. The connection can then run no other commands.
    public func subscribe(_ channels: [String]) throws(RedisError) {
        precondition(!channels.isEmpty, "a channel to listen on")
        isListening = true
        deadline = options.answer.map { Deadline(after: $0) }
        try send([RedisCommand((["SUBSCRIBE"] + channels).map { [UInt8]($0.utf8) })])
        for _ in channels {
            if case .error(let error) = try reply() { throw error }
        }
    }

    /// Waits for messages.
    /// - Parameter limit: The maximum time; nil to wait until a message arrives or `wake` is
    ///   signalled.
    /// - Returns: The messages that have arrived; none if the time is over.
    public func messages(within limit: Duration?) throws(RedisError) -> [RedisMessage] {
        var heard = try messagesAtHand()
        guard heard.isEmpty else { return heard }
        let context = try open()
        let outcome: Wake.Outcome
        do {
            outcome = try wake.wait(
                context.pointee.fd, reading: true, writing: false,
                until: limit.map { Deadline(after: $0) })
        } catch {
            throw cut(.lost, "\(error)")
        }
        if outcome.contains(.readable) {
            try read(context)
            heard = try messagesAtHand()
        }
        return heard
    }

    private func messagesAtHand() throws(RedisError) -> [RedisMessage] {
        var heard: [RedisMessage] = []
        while let reply = try replyAtHand() {
            guard case .array(let parts) = reply, parts.count == 3, parts[0].text == "message",
                let channel = parts[1].text, case .bytes(let payload) = parts[2]
            else { continue }
            heard.append(RedisMessage(channel: channel, payload: payload))
        }
        return heard
    }

    /// Listens on its own connection, and connects again whenever it is lost.
    /// - Returns: The events; see `Listening.events`.
    public static func messages(
        _ address: RedisAddress, channels: [String], options: RedisOptions = RedisOptions(),
        pace: Pace = .system
    ) -> AsyncStream<ListeningEvent<RedisMessage>> {
        Listening.events(
            label: "martlet.redis.listen", pace: pace,
            make: {
                let connection = try RedisConnection(address, options)
                try connection.subscribe(channels)
                return connection
            }, next: { try $0.messages(within: $1) })
    }

    // MARK: - Waiting

    private func open() throws(RedisError) -> UnsafeMutablePointer<redisContext> {
        guard let context else { throw RedisError(.lost, "the connection was lost before") }
        return context
    }

    private func wait(
        writing: Bool, _ late: RedisError.Kind
    ) throws(RedisError) -> Wake.Outcome {
        let context = try open()
        let outcome: Wake.Outcome
        do {
            // While connecting, there is nothing to read.
            outcome = try wake.wait(
                context.pointee.fd, reading: late != .unreachable, writing: writing,
                until: deadline)
        } catch {
            throw cut(.lost, "\(error)")
        }
        if outcome.isEmpty { throw cut(late, "the server did not answer in time") }
        if outcome.contains(.woken) { throw cut(.cancelled, "the commands were given up") }
        return outcome
    }

    private func cut(_ kind: RedisError.Kind, _ message: String) -> RedisError {
        close()
        return RedisError(kind, message)
    }

    private static func words(_ context: UnsafeMutablePointer<redisContext>) -> String {
        withUnsafePointer(to: &context.pointee.errstr) { text in
            text.withMemoryRebound(to: CChar.self, capacity: 128) { String(cString: $0) }
        }
    }
}

@available(*, unavailable)
extension RedisConnection: Sendable {}

/// A connection that is restored after it was lost.
public typealias RedisSession = KeptConnection<RedisConnection>

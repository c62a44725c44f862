internal import CLibevent

/// Streamed answers, whose bodies are written while they are produced.
extension HTTPConnection {
    /// Sends the head, then starts the writer of the body.
    func beginStream(
        _ response: HTTPResponse, _ write: @escaping @Sendable (HTTPBodyWriter) async throws -> Void
    ) {
        // The stream may last for hours, so it no longer counts as a request that waits for an
        // answer.
        releaseRequest()
        let isChunked = response.streamByteCount == nil && head?.isVersion1_1 ?? false
        // Without a length and without chunks, the end of the connection is the end of the answer.
        if !isChunked, response.streamByteCount == nil { isLast = true }
        forgetHead()
        stream = StreamState(isChunked: isChunked, missing: response.streamByteCount)
        phase = .streaming
        core.counters.openStreams += 1
        let bytes = ResponseHead.streamBytes(
            of: response, dateLine: core.dateLine, keepsAlive: !isLast, isChunked: isChunked)
        push(bytes)
        let writer = HTTPBodyWriter(connection: self)
        task = Task.detached {
            var isWhole = true
            do {
                try await write(writer)
            } catch is CancellationError {
                // The server stops. All written bytes are complete pieces.
            } catch {
                isWhole = false
            }
            await self.endStream(isWhole: isWhole)
        }
    }

    /// The most bytes that are copied so that they leave in one call to the kernel.
    private static let joinedByteCount = 64 << 10

    /// Sends pieces after the bytes that wait.
    /// - Returns: Whether the writer has to wait for the client.
    func pushToStream(_ pieces: [[UInt8]]) throws -> Bool {
        guard case .streaming = phase else { throw HTTPStreamClosed() }
        let count = pieces.reduce(0) { $0 + $1.count }
        guard count > 0 else { return false }
        var framed = pieces
        if stream?.isChunked == true {
            framed.insert(Array(String(count, radix: 16).utf8) + [13, 10], at: 0)
            framed.append([13, 10])
        } else if let missing = stream?.missing {
            // The client would read bytes beyond the announced length as the next answer.
            guard Int64(count) <= missing else { throw HTTPStreamClosed() }
            stream?.missing = missing - Int64(count)
        }
        if framed.count > 1, count <= Self.joinedByteCount { framed = [Array(framed.joined())] }
        for piece in framed { push(piece) }
        return unsentByteCount > core.options.streamBufferBytes
    }

    func flushStream() async throws {
        guard case .streaming = phase else { throw HTTPStreamClosed() }
        guard unsentByteCount > 0 else { return }
        await withCheckedContinuation { stream?.waiting = $0 }
        guard case .streaming = phase else { throw HTTPStreamClosed() }
    }

    private func push(_ bytes: [UInt8]) {
        let wasIdle = unsentByteCount == 0
        write(bytes)
        if wasIdle, unsentByteCount > 0 { watchProgress() }
    }

    /// Gives the client `idleTimeout` to take some bytes.
    private func watchProgress() {
        stream?.takenByteCount = backlog.takenByteCount
        timer?.set(in: Clock.nanoseconds(core.options.idleTimeout))
    }

    /// Continues when the buffer has become empty.
    func streamDrained() {
        timer?.cancel()
        stream?.resume()
        if stream?.isEnded == true { streamSent() }
    }

    /// Closes the connection if the client has taken nothing for too long.
    func streamDeadlinePassed() {
        guard unsentByteCount > 0 else { return }
        guard let stream, stream.takenByteCount < backlog.takenByteCount else { return close() }
        watchProgress()
    }

    private func endStream(isWhole: Bool) {
        guard case .streaming = phase else { return }
        task = nil
        // An incomplete body must not look complete.
        guard isWhole, (stream?.missing ?? 0) == 0 else { return close() }
        if stream?.isChunked == true { push([48, 13, 10, 13, 10]) }
        stream?.isEnded = true
        if core.isStopping { isLast = true }
        if unsentByteCount == 0 { streamSent() }
    }

    private func streamSent() {
        stream = nil
        core.counters.openStreams -= 1
        answered()
        readable()
    }

    // MARK: - Pieces

    /// Sends bytes after those that wait. If none wait, the bytes go to the system at once, which
    /// saves three calls to the kernel.
    func write(_ bytes: [UInt8]) {
        guard let bufferevent else { return }
        var start = 0
        if ssl == nil, unsentByteCount == 0 {
            // If the socket is broken, libevent notices it later.
            start = max(0, martlet_send(bufferevent_getfd(bufferevent), bytes, bytes.count))
        }
        guard start < bytes.count else { return }
        bytes.withUnsafeBytes { all in
            let rest = UnsafeRawBufferPointer(rebasing: all[start...])
            bufferevent_write(bufferevent, rest.baseAddress, rest.count)
        }
        core.makeRoom(besides: self)
    }

    /// The bytes that the connection has and the system does not have yet.
    var unsentByteCount: Int {
        bufferevent.map { evbuffer_get_length(bufferevent_get_output($0)) } ?? 0
    }
}

/// The state of a streamed answer under way.
struct StreamState {
    let isChunked: Bool
    /// The announced bytes that are not written yet; nil if no length was announced.
    var missing: Int64?
    var waiting: CheckedContinuation<Void, Never>?
    var isEnded = false
    /// The bytes that the client had taken when its time began.
    var takenByteCount = 0

    init(isChunked: Bool, missing: Int64?) {
        self.isChunked = isChunked
        self.missing = missing
    }

    mutating func resume() {
        waiting?.resume()
        waiting = nil
    }
}

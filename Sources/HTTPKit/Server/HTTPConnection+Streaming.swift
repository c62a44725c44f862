internal import CLibevent

/// Answers whose body is written while it comes into being.
extension HTTPConnection {
    /// Sends the head, then lets the body be written.
    func beginStream(
        _ response: HTTPResponse, _ write: @escaping @Sendable (HTTPBodyWriter) async throws -> Void
    ) {
        // It may last for hours: it is no longer one of the requests that wait for an answer.
        releaseRequest()
        let isChunked = response.streamByteCount == nil && head?.isVersion1_1 ?? false
        // Without either, the end of the connection is the end of the answer.
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
                // The server stops: what was written is whole pieces.
            } catch {
                isWhole = false
            }
            await self.endStream(isWhole: isWhole)
        }
    }

    func writeStream(_ bytes: [UInt8]) async throws {
        guard case .streaming = phase, !bytes.isEmpty else {
            if case .streaming = phase { return }
            throw HTTPStreamClosed()
        }
        if stream?.isChunked == true {
            var chunk = Array(String(bytes.count, radix: 16).utf8)
            chunk.reserveCapacity(chunk.count + bytes.count + 4)
            chunk += [13, 10]
            chunk += bytes
            chunk += [13, 10]
            push(chunk)
        } else {
            if let missing = stream?.missing {
                // More than was announced would be read as the next answer.
                guard Int64(bytes.count) <= missing else { throw HTTPStreamClosed() }
                stream?.missing = missing - Int64(bytes.count)
            }
            push(bytes)
        }
        guard unsentByteCount > core.options.streamBufferBytes else { return }
        try await flushStream()
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

    /// Gives the client `idleTimeout` to take something.
    private func watchProgress() {
        stream?.takenByteCount = backlog.takenByteCount
        timer?.set(in: Clock.nanoseconds(core.options.idleTimeout))
    }

    /// The buffer has run empty.
    func streamDrained() {
        timer?.cancel()
        stream?.resume()
        if stream?.isEnded == true { streamSent() }
    }

    /// A client that has taken nothing for too long is let go.
    func streamDeadlinePassed() {
        guard unsentByteCount > 0 else { return }
        guard let stream, stream.takenByteCount < backlog.takenByteCount else { return close() }
        watchProgress()
    }

    private func endStream(isWhole: Bool) {
        guard case .streaming = phase else { return }
        task = nil
        // A body broken off must not look complete.
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

    /// Sends bytes behind those that wait. Where none do they go to the system at once, which saves
    /// three calls to the kernel.
    func write(_ bytes: [UInt8]) {
        guard let bufferevent else { return }
        var start = 0
        if ssl == nil, unsentByteCount == 0 {
            // If the socket is broken, libevent finds that out by itself.
            start = max(0, martlet_send(bufferevent_getfd(bufferevent), bytes, bytes.count))
        }
        guard start < bytes.count else { return }
        bytes.withUnsafeBytes { all in
            let rest = UnsafeRawBufferPointer(rebasing: all[start...])
            bufferevent_write(bufferevent, rest.baseAddress, rest.count)
        }
        core.makeRoom(besides: self)
    }

    /// Bytes given to the connection and not yet to the system.
    var unsentByteCount: Int {
        bufferevent.map { evbuffer_get_length(bufferevent_get_output($0)) } ?? 0
    }
}

/// A streamed answer under way.
struct StreamState {
    let isChunked: Bool
    /// Bytes announced and not yet written; nil where none were announced.
    var missing: Int64?
    var waiting: CheckedContinuation<Void, Never>?
    var isEnded = false
    /// Bytes the client had taken when its time began.
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

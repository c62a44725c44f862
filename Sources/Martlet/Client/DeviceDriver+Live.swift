internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// The driver's part of the live connection and the pull policy.
extension DeviceDriver {
    /// Sets the policy, with effect now or when the client is started.
    func setPolicy(_ policy: PullPolicy) {
        self.policy = policy
        guard isRunning, !isClosed else { return }
        perform(follow(policy))
    }

    /// Tells the node what the policy asks for.
    func follow(_ policy: PullPolicy) -> [DeviceNode.Action] {
        node.setPollInterval(policy.pollMilliseconds) + node.setLive(policy.isLive, now: now())
    }

    /// Exchanges once, unless the live connection is open or the last exchange is recent enough.
    func refresh(
        ifOlderThan age: Duration, _ waiter: CheckedContinuation<Revision, any Error>,
        _ sign: CancellationFlag
    ) {
        guard !isClosed, transport != nil, isOlder(than: age) else {
            // `sync` refuses a closed client and one without a server.
            guard !isClosed, transport != nil else { return sync(waiter, sign) }
            return waiter.resume(returning: revision.value)
        }
        sync(waiter, sign)
    }

    private func isOlder(than age: Duration) -> Bool {
        guard connection.value != .live else { return false }
        guard let last = (try? node.store.lastExchange) ?? nil else { return true }
        let now = now()
        // If the clock was set back, the age is unknown, so the last exchange counts as too old.
        return now < last || now - last > age.wholeMilliseconds
    }

    /// Updates the connection's state when the stream opens or ends.
    func connectionChanged(isLive: Bool) {
        if isLive {
            traffic.connections += 1
            connection.value = .live
        } else if connection.value == .live {
            // The state of the server is unknown until the next attempt, unless the client itself
            // closed the stream.
            connection.value = policy.isLive ? .offline : .polling
        }
    }

    /// Listens, and delivers one event at a time: it reads the next one when the node has taken the
    /// last.
    func openStream(_ number: Int, _ cursor: DeltaCursor) {
        guard let inbox, let deliver else { return }
        guard let transport = transport as? any LiveTransport else {
            let message = "The transport has no live connection."
            return inbox(.streamEnded(number, status: 501, message: message, retryAfter: nil))
        }
        streams[number] = Task {
            do throws(TransportFailure) {
                try await transport.deltas(cursor) { event in
                    switch event {
                    case .opened: await deliver(.streamOpened(number))
                    case .sign(let elapsed):
                        await deliver(.streamSign(number, elapsed: elapsed))
                    case .batch(let bytes): await deliver(.streamed(number, bytes))
                    }
                }
                inbox(
                    .streamEnded(
                        number, status: nil, message: "The server ended the live connection.",
                        retryAfter: nil))
            } catch {
                inbox(
                    .streamEnded(
                        number, status: error.status, message: error.message,
                        problem: error.problem, retryAfter: error.retryAfter,
                        inBatch: error.isInBatch))
            }
        }
    }
}

internal import CCurl
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// The thread on which libcurl performs a session's requests. It starts with the first request.
final class CurlThread: Sendable {
    enum Command {
        case start(CurlHandle)
        case cancel(CurlHandle)
        case goOn(CurlHandle)
        case look(CurlHandle)
        /// Ends all requests and the thread.
        case stop
    }

    private struct State {
        var commands: [Command] = []
        /// libcurl's multi handle; nil before the first request and after the end.
        nonisolated(unsafe) var transfers: UnsafeMutableRawPointer?
        var isStopped = false
    }

    private let state = Mutex(State())
    /// The number of times that the thread has looked for work.
    let rounds = Atomic(0)

    /// Initialises libcurl, once for the process.
    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

    func post(_ command: Command) {
        let refused: CurlHandle? = state.withLock { state in
            guard !state.isStopped else {
                if case .start(let handle) = command { return handle }
                return nil
            }
            if state.transfers == nil {
                if case .stop = command { state.isStopped = true }
                // Without a thread there is nothing to cancel.
                guard case .start(let handle) = command else { return nil }
                guard Self.isLibraryReady, let made = curl_multi_init() else { return handle }
                state.transfers = made
                guard begin() else {
                    curl_multi_cleanup(made)
                    state.transfers = nil
                    return handle
                }
            }
            state.commands.append(command)
            // The lock is held here because the thread frees the handle under it.
            if let transfers = state.transfers { curl_multi_wakeup(transfers) }
            return nil
        }
        refused?.receiver.ended(CurlError(message: "no thread for it", isUntrusted: false))
    }

    private func begin() -> Bool {
        #if canImport(Glibc)
            var made = pthread_t()
        #else
            var made: pthread_t?
        #endif
        let me = Unmanaged.passRetained(self)
        let code = pthread_create(
            &made, nil,
            { argument in
                CurlThread.run(argument)
                return nil
            }, me.toOpaque())
        guard code == 0 else {
            me.release()
            return false
        }
        #if canImport(Glibc)
            pthread_detach(made)
        #else
            if let made { pthread_detach(made) }
        #endif
        return true
    }

    /// Runs the thread.
    private static func run(_ argument: UnsafeMutableRawPointer?) {
        guard let argument else { return }
        let me = Unmanaged<CurlThread>.fromOpaque(argument).takeRetainedValue()
        // TLS may write to a connection that is closed. SIGPIPE must not end the program.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        guard let transfers = me.state.withLock({ $0.transfers }) else { return }
        me.work(transfers)
    }

    /// Works until it is stopped.
    private func work(_ transfers: UnsafeMutableRawPointer) {
        var underWay: [UnsafeMutableRawPointer: CurlHandle] = [:]
        while true {
            rounds.add(1, ordering: .relaxed)
            let commands = state.withLock { state in
                defer { state.commands.removeAll(keepingCapacity: true) }
                return state.commands
            }
            for command in commands {
                if case .stop = command { return end(transfers, underWay) }
                perform(command, transfers, &underWay)
            }
            var running: Int32 = 0
            curl_multi_perform(transfers, &running)
            var code = CURLE_OK
            while let easy = martlet_curl_next_ended(transfers, &code) {
                curl_multi_remove_handle(transfers, easy)
                guard let handle = underWay.removeValue(forKey: easy) else { continue }
                // A short transfer may end before anybody looked.
                handle.look()
                handle.receiver.ended(handle.error(code))
            }
            // A posted command wakes the thread, and libcurl has its own timers.
            curl_multi_poll(transfers, nil, 0, 3_600_000, nil)
        }
    }

    private func perform(
        _ command: Command, _ transfers: UnsafeMutableRawPointer,
        _ underWay: inout [UnsafeMutableRawPointer: CurlHandle]
    ) {
        switch command {
        case .start(let handle):
            guard let easy = handle.easy, curl_multi_add_handle(transfers, easy) == CURLM_OK else {
                return handle.receiver.ended(
                    CurlError(message: "no memory for a request", isUntrusted: false))
            }
            underWay[easy] = handle
        case .cancel(let handle):
            guard let easy = handle.easy, underWay.removeValue(forKey: easy) != nil else { return }
            curl_multi_remove_handle(transfers, easy)
            handle.receiver.ended(CurlError(message: "it was cancelled", isUntrusted: false))
        case .goOn(let handle):
            guard let easy = handle.easy, underWay[easy] != nil else { return }
            curl_easy_pause(easy, CURLPAUSE_CONT)
        case .look(let handle):
            guard let easy = handle.easy, underWay[easy] != nil else { return }
            handle.look()
        case .stop: break
        }
    }

    private func end(
        _ transfers: UnsafeMutableRawPointer,
        _ underWay: [UnsafeMutableRawPointer: CurlHandle]
    ) {
        let late = state.withLock { state in
            defer { state.commands = [] }
            state.isStopped = true
            state.transfers = nil
            return state.commands
        }
        let error = CurlError(message: "the session has ended", isUntrusted: false)
        for (easy, handle) in underWay {
            curl_multi_remove_handle(transfers, easy)
            handle.receiver.ended(error)
        }
        for case .start(let handle) in late { handle.receiver.ended(error) }
        curl_multi_cleanup(transfers)
    }
}

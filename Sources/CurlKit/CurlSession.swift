/// Performs requests with libcurl on one thread, and keeps connections for later requests.
///
/// Follows no redirect, keeps no cookies and sends no passwords. It verifies certificates against
/// the file in `SSL_CERT_FILE` and the folder in `SSL_CERT_DIR` if these are set, and else against
/// the system's. Proxies of the environment (`https_proxy`, `no_proxy`) count for https alone.
public final class CurlSession: Sendable {
    let thread = CurlThread()

    public init() {}

    deinit {
        thread.post(.stop)
    }

    /// Starts a request. The receiver gets its answer and its end.
    public func start(_ request: CurlRequest, receiver: any CurlReceiver) -> CurlTransfer {
        let handle = CurlHandle(request, receiver: receiver)
        thread.post(.start(handle))
        return CurlTransfer(thread: thread, handle: handle)
    }
}

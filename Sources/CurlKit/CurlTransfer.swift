internal import CCurl

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A running request.
public final class CurlTransfer: Sendable {
    private let thread: CurlThread
    private let handle: CurlHandle

    init(thread: CurlThread, handle: CurlHandle) {
        self.thread = thread
        self.handle = handle
    }

    /// Ends the request, and tells the receiver unless the request has ended already.
    public func cancel() {
        thread.post(.cancel(handle))
    }

    /// Continues an answer that the receiver has held up.
    public func goOn() {
        thread.post(.goOn(handle))
    }

    /// Tells the receiver how many bytes of the request have been sent.
    public func look() {
        thread.post(.look(handle))
    }
}

/// The state of one request in libcurl and its buffers. Used on the session's thread only.
final class CurlHandle: @unchecked Sendable {
    /// The most bytes that the heads of one answer may have.
    private static let mostHeaderBytes = 256 << 10

    let receiver: any CurlReceiver
    private(set) var easy: UnsafeMutableRawPointer?
    private var fields: UnsafeMutablePointer<curl_slist>?
    private let body: UnsafeMutableBufferPointer<CChar>?
    private let error = UnsafeMutableBufferPointer<CChar>.allocate(
        capacity: Int(CURL_ERROR_SIZE))
    private var status = 0
    private var headers: [String: String] = [:]
    private var headerBytes = 0
    private var hasHead = false

    init(_ request: CurlRequest, receiver: any CurlReceiver) {
        self.receiver = receiver
        body = request.body.map { bytes in
            let copy = UnsafeMutableBufferPointer<CChar>.allocate(capacity: max(1, bytes.count))
            for (index, byte) in bytes.enumerated() { copy[index] = CChar(bitPattern: byte) }
            return copy
        }
        error.initialize(repeating: 0)
        easy = curl_easy_init()
        guard let easy else { return }
        let context = Unmanaged.passUnretained(self).toOpaque()
        martlet_curl_set_context(easy, CURLOPT_PRIVATE, context)
        martlet_curl_set_buffer(easy, CURLOPT_ERRORBUFFER, error.baseAddress)
        setRules(easy, request)
        martlet_curl_set_context(easy, CURLOPT_WRITEDATA, context)
        martlet_curl_set_receiver(easy, CURLOPT_WRITEFUNCTION) { bytes, _, count, context in
            CurlHandle.at(context)?.take(bytes, count) ?? 0
        }
        martlet_curl_set_context(easy, CURLOPT_HEADERDATA, context)
        martlet_curl_set_receiver(easy, CURLOPT_HEADERFUNCTION) { bytes, _, count, context in
            CurlHandle.at(context)?.takeLine(bytes, count) ?? 0
        }
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }
        curl_slist_free_all(fields)
        body?.deallocate()
        error.deallocate()
    }

    private static func at(_ context: UnsafeMutableRawPointer?) -> CurlHandle? {
        context.map { Unmanaged<CurlHandle>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Restricts libcurl to one request to one address, over HTTP/1.1, without redirects or
    /// passwords.
    private func setRules(_ easy: UnsafeMutableRawPointer, _ request: CurlRequest) {
        martlet_curl_set_text(easy, CURLOPT_URL, request.url)
        martlet_curl_set_text(easy, CURLOPT_CUSTOMREQUEST, request.method)
        martlet_curl_speak_http_only(easy)
        martlet_curl_set_number(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        martlet_curl_set_number(easy, CURLOPT_FOLLOWLOCATION, 0)
        martlet_curl_set_number(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        // Signals would reach the whole program.
        martlet_curl_set_number(easy, CURLOPT_NOSIGNAL, 1)
        martlet_curl_set_number(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // A plain `http` request goes to this machine only, never to a proxy.
        if request.url.lowercased().hasPrefix("http:") {
            martlet_curl_set_text(easy, CURLOPT_PROXY, "")
        }
        for (option, variable) in [
            (CURLOPT_CAINFO, "SSL_CERT_FILE"), (CURLOPT_CAPATH, "SSL_CERT_DIR"),
        ] {
            if let path = getenv(variable), path.pointee != 0 {
                martlet_curl_set_text(easy, option, path)
            }
        }
        if request.method == "HEAD" { martlet_curl_set_number(easy, CURLOPT_NOBODY, 1) }
        if let body, let count = request.body?.count {
            martlet_curl_set_size(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(count))
            martlet_curl_set_buffer(easy, CURLOPT_POSTFIELDS, body.baseAddress)
        }
        if request.inflates { martlet_curl_set_text(easy, CURLOPT_ACCEPT_ENCODING, "gzip") }
        // libcurl would wait a second for the server's permission to send a body.
        fields = curl_slist_append(fields, "Expect:")
        for (name, value) in request.headers {
            fields = curl_slist_append(fields, "\(name): \(value)")
        }
        martlet_curl_set_fields(easy, fields)
    }

    private func take(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        let bytes = [UInt8](UnsafeRawBufferPointer(start: bytes, count: count))
        guard receiver.receive(bytes) else {
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        return count
    }

    /// Takes one line of a head. If there are several heads, the last one counts; fields after it
    /// are trailers.
    private func takeLine(_ bytes: UnsafeMutablePointer<CChar>?, _ count: Int) -> Int {
        guard !hasHead else { return count }
        headerBytes += count
        guard headerBytes <= Self.mostHeaderBytes else { return 0 }
        let raw = UnsafeRawBufferPointer(start: bytes, count: count)
        let line = String(decoding: raw, as: UTF8.self).filter { !$0.isNewline }
        if line.hasPrefix("HTTP/") {
            let words = line.split(separator: " ")
            status = words.count > 1 ? Int(words[1]) ?? 0 : 0
            headers = [:]
        } else if line.isEmpty {
            guard status >= 200 else { return count }
            hasHead = true
            receiver.receive(status: status, headers: headers)
        } else if let colon = line.firstIndex(of: ":") {
            var value = line[line.index(after: colon)...]
            while value.first?.isWhitespace == true { value.removeFirst() }
            while value.last?.isWhitespace == true { value.removeLast() }
            headers[line[..<colon].lowercased()] = String(value)
        }
        return count
    }

    /// Tells the receiver how many bytes have been sent.
    func look() {
        if let easy { receiver.sent(martlet_curl_sent(easy)) }
    }

    /// Returns the error for a result code of libcurl; nil if the answer is complete.
    func error(_ code: CURLcode) -> CurlError? {
        guard code != CURLE_OK else { return nil }
        let own = error.baseAddress.map { String(cString: $0) } ?? ""
        let untrusted = [
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
        ]
        return CurlError(
            message: own.isEmpty ? String(cString: curl_easy_strerror(code)) : own,
            isUntrusted: untrusted.contains(code))
    }
}

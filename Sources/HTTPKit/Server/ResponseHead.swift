/// Writes the head of an answer.
enum ResponseHead {
    /// Returns the head of an answer.
    /// - Parameters:
    ///   - dateLine: The `Date` header, with its line end.
    ///   - keepsAlive: Whether the connection stays open.
    static func bytes(
        of response: HTTPResponse, dateLine: [UInt8], keepsAlive: Bool
    ) -> [UInt8] {
        var head = start(of: response, dateLine: dateLine)
        if hasBody(response.status) {
            append("Content-Length: ", to: &head)
            append(
                String(response.streamByteCount ?? Int64(response.bodyByteCount)), to: &head)
            append("\r\n", to: &head)
        }
        append(keepsAlive ? "\r\n" : "Connection: close\r\n\r\n", to: &head)
        return head
    }

    /// Returns the head of a streamed answer.
    static func streamBytes(
        of response: HTTPResponse, dateLine: [UInt8], keepsAlive: Bool, isChunked: Bool
    ) -> [UInt8] {
        var head = start(of: response, dateLine: dateLine)
        if let count = response.streamByteCount {
            append("Content-Length: \(count)\r\n", to: &head)
        } else if isChunked {
            append("Transfer-Encoding: chunked\r\n", to: &head)
        }
        append(keepsAlive ? "\r\n" : "Connection: close\r\n\r\n", to: &head)
        return head
    }

    /// Returns the head of an answer after which the connection uses another protocol.
    static func upgradeBytes(of response: HTTPResponse, dateLine: [UInt8]) -> [UInt8] {
        start(of: response, dateLine: dateLine) + [13, 10]
    }

    private static func start(of response: HTTPResponse, dateLine: [UInt8]) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(256)
        append("HTTP/1.1 ", to: &head)
        append(String(response.status), to: &head)
        append(" ", to: &head)
        append(reason(response.status), to: &head)
        append("\r\n", to: &head)
        head += dateLine
        for field in response.headers {
            appendSafely(field.name, to: &head)
            append(": ", to: &head)
            appendSafely(field.value, to: &head)
            append("\r\n", to: &head)
        }
        return head
    }

    /// Returns whether an answer with that status has a body at all (RFC 9110 §6.4.1).
    static func hasBody(_ status: Int) -> Bool {
        status >= 200 && status != 204 && status != 304
    }

    private static func append(_ text: String, to head: inout [UInt8]) {
        head.append(contentsOf: text.utf8)
    }

    /// Appends a header's text without line ends, so that no text can add a header.
    private static func appendSafely(_ text: String, to head: inout [UInt8]) {
        for byte in text.utf8 {
            head.append(HeadParser.isValue(byte) ? byte : UInt8(ascii: " "))
        }
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 206: "Partial Content"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 406: "Not Acceptable"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 416: "Range Not Satisfiable"
        case 417: "Expectation Failed"
        case 422: "Unprocessable Content"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        case 507: "Insufficient Storage"
        default: "Status"
        }
    }
}

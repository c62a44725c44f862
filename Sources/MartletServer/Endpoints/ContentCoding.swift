/// Reads the headers that describe how a body is coded.
enum ContentCoding {
    /// Returns whether an answer may be gzip, by an `Accept-Encoding` header (RFC 9110 §12.5.3).
    static func acceptsGzip(_ header: String?) -> Bool {
        var any = false
        for item in (header ?? "").split(separator: ",") {
            let parts = item.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
            guard let coding = parts.first else { continue }
            let isRefused = parts.dropFirst().contains { part in
                part.hasPrefix("q=0") && part.dropFirst(3).allSatisfy { $0 == "." || $0 == "0" }
            }
            switch coding {
            case "gzip", "x-gzip": return !isRefused
            case "*": any = !isRefused
            default: break
            }
        }
        return any
    }

    /// Returns whether a `Content-Type` is JSON, with any parameters.
    static func isJSON(_ header: String?) -> Bool {
        let type = (header ?? "").prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }
        return type.lowercased() == "application/json"
    }

    /// The coding of a request's body.
    enum Request: Hashable {
        case plain
        case gzip
        case unknown
    }

    static func request(_ header: String?) -> Request {
        switch header?.lowercased() {
        case nil, "", "identity": .plain
        case "gzip", "x-gzip": .gzip
        default: .unknown
        }
    }
}

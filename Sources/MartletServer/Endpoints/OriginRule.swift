internal import Foundation
internal import HTTPKit

/// Decides which pages in a browser may open a WebSocket.
///
/// A browser lets any page connect to any server, and names the page in `Origin`. Programs that are
/// not browsers send no `Origin`.
struct OriginRule: Sendable {
    /// The origins in addition to the server's own, as browsers write them.
    private let allowed: Set<String>

    /// Takes origins such as `https://app.example.org`.
    ///
    /// - Throws: `ServerFailure` for a text that no browser would send.
    init(_ origins: [String]) throws(ServerFailure) {
        for origin in origins where Self.authority(origin) == nil {
            throw ServerFailure(
                "“\(origin)” is no origin; give the scheme and the host, such as"
                    + " https://app.example.org, without a path.")
        }
        allowed = Set(origins.map { $0.lowercased() })
    }

    func allows(_ headers: HTTPHeaders) -> Bool {
        let origins = headers.values("origin")
        guard let origin = origins.first?.lowercased() else { return true }
        guard origins.count == 1 else { return false }
        if allowed.contains(origin) { return true }
        // A proxy in front of the server may speak TLS, so the scheme is not compared.
        return Self.authority(origin).map { $0 == headers["host"]?.lowercased() } ?? false
    }

    /// Returns the host, with the port if the origin names one; nil for a text that is no origin.
    private static func authority(_ origin: String) -> String? {
        guard let parts = URLComponents(string: origin), let host = parts.host, !host.isEmpty,
            parts.path.isEmpty, parts.query == nil, parts.fragment == nil, parts.user == nil,
            ["http", "https"].contains(parts.scheme?.lowercased())
        else { return nil }
        return (host + (parts.port.map { ":\($0)" } ?? "")).lowercased()
    }
}

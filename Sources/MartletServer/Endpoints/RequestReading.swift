internal import CompressionKit
internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import SystemKit

/// Reads the bodies of `POST /sync`.
///
/// A large body takes half a second and 64 MiB. Large bodies are therefore read one at a time on a
/// thread of their own, and small requests find the thread pool free.
struct RequestReading: Sendable {
    /// The sent size, in bytes, from which a body counts as large. A compressed body may be 250
    /// times as long when inflated.
    private static let largeByteCount = 64 << 10

    private let queue = CallQueue(label: "martlet.reading")

    /// Returns the message in a request's body, and the JSON that it was read from.
    ///
    /// - Throws: `Problem` if the body, or a header about it, is wrong.
    func read(_ request: HTTPRequest) async throws(Problem) -> (SyncRequest, [UInt8]) {
        guard request.body.count >= Self.largeByteCount else { return try Self.read(request) }
        return try await queue.run { () throws(Problem) in try Self.read(request) }
    }

    /// Returns the message in plain JSON.
    ///
    /// - Throws: `Problem` if it is malformed or has a version that this server does not know.
    func read(json: [UInt8]) async throws(Problem) -> SyncRequest {
        guard json.count >= Self.largeByteCount else { return try Self.message(json) }
        return try await queue.run { () throws(Problem) in try Self.message(json) }
    }

    private static func read(_ request: HTTPRequest) throws(Problem) -> (SyncRequest, [UInt8]) {
        guard ContentCoding.isJSON(request.headers["content-type"]) else {
            throw .unsupportedMediaType
        }
        let bytes = try inflated(request)
        return (try message(bytes), bytes)
    }

    private static func message(_ bytes: [UInt8]) throws(Problem) -> SyncRequest {
        let message = try decoded(bytes)
        let version = message.protocolVersion ?? WireVersion.current
        guard WireVersion.oldest...WireVersion.current ~= version else {
            throw .versionUnsupported
        }
        return message
    }

    private static func inflated(_ request: HTTPRequest) throws(Problem) -> [UInt8] {
        let codings = request.headers.lineCount("content-encoding")
        switch ContentCoding.request(request.headers["content-encoding"]) {
        case .plain where codings <= 1: return request.body
        case .gzip where codings == 1: break
        default: throw .unsupportedEncoding
        }
        do {
            return try OneShotGzip.inflate(
                request.body, limit: Limits.inflatedBytes, ratio: Limits.inflationRatio,
                ratioFloor: Limits.inflationRatioFloor)
        } catch {
            switch error.kind {
            case .tooLarge, .ratio: throw .tooLarge(sentence(error.message))
            default:
                throw .malformed("The body is not gzip: \(error.message).")
            }
        }
    }

    private static func decoded(_ bytes: [UInt8]) throws(Problem) -> SyncRequest {
        do {
            return try SyncCoder.decodeRequest(bytes)
        } catch {
            // A message of a version that this server does not know may look different.
            if let version = version(in: bytes),
                !(WireVersion.oldest...WireVersion.current ~= version)
            {
                throw .versionUnsupported
            }
            throw .malformed(error.description)
        }
    }

    /// Returns the `protocol` member of a message that cannot be decoded; nil if there is none.
    private static func version(in bytes: [UInt8]) -> Int64? {
        var version: Int64?
        var json = JSONReader(bytes)
        do {
            try json.readObject { (json, name) throws(WireFault) in
                if name == "protocol" {
                    version = try json.readInteger()
                } else {
                    try json.skipValue()
                }
            }
        } catch {
            return nil
        }
        return version
    }

    private static func sentence(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst() + "."
    }
}

internal import CompressionKit
internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol
internal import SystemKit

/// Reads the bodies of `POST /sync`.
///
/// A large one takes half a second and 64 MiB: such are read one at a time, on a thread of their
/// own, so that the small requests of everyone else find the pool free.
struct RequestReading: Sendable {
    /// Bytes as sent from which a body counts as large; compressed it may be 250 times as long.
    private static let largeByteCount = 64 << 10

    private let queue = CallQueue(label: "martlet.reading")

    /// The message in a request's body, and the bytes it was read from.
    /// - Throws: What is wrong with the body, or with what the headers say of it.
    func read(_ request: HTTPRequest) async throws(Problem) -> (SyncRequest, [UInt8]) {
        guard request.body.count >= Self.largeByteCount else { return try Self.read(request) }
        return try await queue.run { () throws(Problem) in try Self.read(request) }
    }

    /// The message in plain JSON.
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
            // A version this server does not know may look different from here on.
            if let version = version(in: bytes),
                !(WireVersion.oldest...WireVersion.current ~= version)
            {
                throw .versionUnsupported
            }
            throw .malformed(error.description)
        }
    }

    /// The `protocol` member of a message that is otherwise not ours.
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

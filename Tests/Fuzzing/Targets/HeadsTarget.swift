@testable import HTTPKit

/// Requests as they come in: head, body, chunks. The first byte says how they are cut.
enum HeadsTarget: FuzzTarget {
    static let name = "heads"

    private static let headLimit = 1_024
    private static let bodyLimit = 2_048

    static func check(_ input: [UInt8]) throws {
        guard let seed = input.first else { return }
        let bytes = input[1...]
        let whole = read([Array(bytes)])
        let cut = read(pieces(of: bytes, seed: seed))
        guard case .success(let request?) = whole else {
            try hold(isSame(whole, cut), "a refusal does not depend on how a request is cut")
            if case .failure(let refusal) = whole {
                try hold(
                    (400..<600).contains(refusal.status) && !refusal.detail.isEmpty,
                    "a refusal has a status and a sentence")
            }
            return
        }
        guard case .success(let other?) = cut else {
            throw BrokenPromise(description: "a request does not depend on how it is cut")
        }
        try hold(
            request.text == other.text && request.body == other.body && request.rest == other.rest,
            "a request does not depend on how it is cut")
        try hold(request.body.count <= bodyLimit, "no body over the limit")
        try checkFraming(request.head)
        try checkAgain(request.head)
    }

    /// A request that was read.
    private struct Whole {
        var head: RequestHead
        var body: [UInt8]
        /// Bytes behind it, of the next one.
        var rest: Int
        var text: String { HeadsTarget.text(of: head) }
    }

    /// Reads as a connection does; nil inside where more must come.
    private static func read(_ pieces: [[UInt8]]) -> Result<Whole?, HTTPRefusal> {
        Result { () throws(HTTPRefusal) in
            var bytes: [UInt8] = []
            var scanner = HeadScanner()
            var head: RequestHead?
            var body: BodyReader?
            for piece in pieces {
                bytes += piece
                if head == nil {
                    let known = Array(bytes.prefix(headLimit))
                    guard let end = try scan(known, &scanner) else { continue }
                    let found = try parse(Array(known[..<end]))
                    bytes.removeFirst(end)
                    head = found
                    body = try BodyReader(found.framing, limit: bodyLimit)
                }
                if body?.isDone == false { bytes.removeFirst(try take(bytes, &body)) }
            }
            guard let head, let body, body.isDone else { return nil }
            return Whole(head: head, body: body.body, rest: bytes.count)
        }
    }

    private static func scan(
        _ bytes: [UInt8], _ scanner: inout HeadScanner
    ) throws(HTTPRefusal) -> Int? {
        let bytes = UnsafeMutableRawBufferPointer.copy(of: bytes)
        defer { bytes.deallocate() }
        return try scanner.end(in: UnsafeRawBufferPointer(bytes), limit: headLimit)
    }

    static func parse(_ head: [UInt8]) throws(HTTPRefusal) -> RequestHead {
        let bytes = UnsafeMutableRawBufferPointer.copy(of: head)
        defer { bytes.deallocate() }
        return try HeadParser.parse(UnsafeRawBufferPointer(bytes))
    }

    private static func take(
        _ bytes: [UInt8], _ body: inout BodyReader?
    ) throws(HTTPRefusal) -> Int {
        let bytes = UnsafeMutableRawBufferPointer.copy(of: bytes)
        defer { bytes.deallocate() }
        return try body?.read(UnsafeRawBufferPointer(bytes)) ?? 0
    }

    private static func isSame(
        _ one: Result<Whole?, HTTPRefusal>, _ other: Result<Whole?, HTTPRefusal>
    ) -> Bool {
        switch (one, other) {
        case (.success(nil), .success(nil)): true
        case (.failure(let one), .failure(let other)): one == other
        default: false
        }
    }

    /// Nothing is left for another reader to read in another way.
    private static func checkFraming(_ head: RequestHead) throws {
        let lengths = head.headers.lineCount("content-length")
        let codings = head.headers.lineCount("transfer-encoding")
        try hold(lengths + codings <= 1, "one thing at most says where a body ends")
        switch head.framing {
        case .chunked: try hold(codings == 1, "a chunked body says so")
        case .length(let length):
            try hold(codings == 0 && (lengths == 1 || length == 0), "a body with a length has one")
        }
        try hold(head.path.hasPrefix("/") || head.path == "*", "a path begins with a slash")
        try hold(head.headers.count <= HeadParser.maxLines, "no more lines than allowed")
    }

    /// Written plainly, a head reads back as the same.
    private static func checkAgain(_ head: RequestHead) throws {
        let text = text(of: head)
        try hold(
            self.text(of: try parse([UInt8](text.utf8))) == text, "a head written again is the same"
        )
    }

    private static func text(of head: RequestHead) -> String {
        let target = head.path + (head.query.map { "?\($0)" } ?? "")
        let lines = head.headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
        return "\(head.method) \(target) HTTP/1.\(head.isVersion1_1 ? 1 : 0)\r\n\(lines)\r\n"
    }
}

extension UnsafeMutableRawBufferPointer {
    /// A copy at the end of its own allocation: a step beyond it is noticed.
    fileprivate static func copy(of bytes: [UInt8]) -> UnsafeMutableRawBufferPointer {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        copy.copyBytes(from: bytes)
        return copy
    }
}

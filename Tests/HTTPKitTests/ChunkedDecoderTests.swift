import Testing

@testable import HTTPKit

@Suite("Chunked body")
struct ChunkedDecoderTests {
    /// The body, and how many bytes it took; nil when the coding has not ended.
    private func decode(
        _ text: String, step: Int = .max, limit: Int = 1_000
    ) throws -> (body: String, used: Int)? {
        let bytes = [UInt8](text.utf8)
        var decoder = ChunkedDecoder()
        var body: [UInt8] = []
        var used = 0
        while used < bytes.count, !decoder.isDone {
            let end = step < bytes.count - used ? used + step : bytes.count
            used += try bytes[used..<end].withUnsafeBytes {
                try decoder.read($0, into: &body, limit: limit)
            }
        }
        return decoder.isDone ? (String(decoding: body, as: UTF8.self), used) : nil
    }

    @Test("joins the chunks, whichever way the bytes are cut, and stops at the end")
    func cutsOfChunks() throws {
        let text = "5;ext=\"x\"\r\nhello\r\n00A\r\n, chunked!\r\n0\r\nTrailer: x\r\n\r\n"
        for step in 1...text.utf8.count {
            let found = try #require(try decode(text + "GET /", step: step))
            #expect(found.body == "hello, chunked!")
            #expect(found.used == text.utf8.count)
        }
    }

    @Test("waits for the last line")
    func incomplete() throws {
        #expect(try decode("5\r\nhello\r\n0\r\n") == nil)
        #expect(try decode("5\r\nhel") == nil)
    }

    @Test(
        "refuses anything laxer than the coding",
        arguments: [
            "5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\r\nhello\n0\r\n\r\n",
            "\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n",
            "-5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "g\r\n", "+1\r\n",
            "0000000000000005\r\nhello\r\n0\r\n\r\n", ";\r\n", "5;\u{1}\r\n", "5\r\nhello\rX",
            "0\r\n Folded: x\r\n\r\n", "0\r\nX: \u{0}\r\n\r\n", "0\r\n\rX", "1\rX",
        ])
    func refusalsOfLaxChunks(text: String) throws {
        let refusal = #expect(throws: HTTPRefusal.self) { try decode(text) }
        #expect(refusal?.status == 400)
    }

    @Test("refuses a body over the limit when its size is named, not when it has come")
    func limitOfChunks() throws {
        #expect(try decode("A\r\n0123456789\r\n0\r\n\r\n", limit: 10)?.body == "0123456789")
        #expect(throws: BodyReader.tooLarge(10)) { try decode("B\r\n", limit: 10) }
        #expect(throws: BodyReader.tooLarge(10)) {
            try decode("9\r\n012345678\r\n2\r\n", limit: 10)
        }
        #expect(throws: BodyReader.tooLarge(10)) { try decode("fffffffffffffff\r\n", limit: 10) }
    }

    @Test("reads over so much of extensions and trailers, and no more")
    func extras() throws {
        let long = String(repeating: "x", count: 9_000)
        #expect(throws: HTTPRefusal.self) { try decode("1;\(long)\r\n") }
        #expect(throws: HTTPRefusal.self) { try decode("0\r\nA: \(long)\r\n\r\n") }
        let many = String(repeating: "1;a\r\nx\r\n", count: 5_000)
        #expect(throws: HTTPRefusal.self) { try decode(many, limit: 10_000) }
    }
}

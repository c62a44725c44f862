import Testing

@testable import MartletServer

@Suite("Content coding")
struct ContentCodingTests {
    @Test(
        "takes gzip where it is offered and not refused",
        arguments: [
            (nil, false), ("", false), ("gzip", true), ("deflate, gzip;q=0.5", true),
            ("gzip;q=0", false), ("gzip; q=0.000", false), ("gzip;q=0.001", true), ("br", false),
            ("*", true), ("*;q=0", false), ("gzip;q=0, *", false), ("GZIP", true),
        ] as [(String?, Bool)])
    func accepts(header: String?, accepts: Bool) {
        #expect(ContentCoding.acceptsGzip(header) == accepts)
    }

    @Test("knows JSON by its type, whatever the parameters")
    func jsonMediaTypes() {
        #expect(ContentCoding.isJSON("application/json"))
        #expect(ContentCoding.isJSON("Application/JSON; charset=utf-8"))
        #expect(!ContentCoding.isJSON("text/json"))
        #expect(!ContentCoding.isJSON("application/jsonp"))
        #expect(!ContentCoding.isJSON(nil))
    }

    @Test("reads no coding but gzip")
    func request() {
        #expect(ContentCoding.request(nil) == .plain)
        #expect(ContentCoding.request("identity") == .plain)
        #expect(ContentCoding.request("x-gzip") == .gzip)
        #expect(ContentCoding.request("gzip, gzip") == .unknown)
        #expect(ContentCoding.request("br") == .unknown)
    }
}

import Testing

/// A malformed body and a part of the sentence that refuses it.
struct Refusal: Sendable, CustomTestStringConvertible {
    var bytes: [UInt8]
    var words: String

    init(_ text: String, _ words: String) {
        bytes = [UInt8](text.utf8)
        self.words = words
    }

    /// Bytes inside the quotes of a client id.
    init(text: [UInt8], _ words: String) {
        bytes = [UInt8](#"{"clientId":""#.utf8) + text
        bytes += [UInt8](#"","maxRevision":0,"changeSets":[]}"#.utf8)
        self.words = words
    }

    var testDescription: String {
        String(decoding: bytes.prefix(80), as: UTF8.self).debugDescription
    }
}

extension Refusal {
    static let notJSON: [Refusal] = [
        Refusal("", "ends too early"),
        Refusal("  \n", "ends too early"),
        Refusal("\u{FEFF}{\"maxRevision\":0,\"changeSets\":[]}", "byte order mark"),
        Refusal("{", "Expected a member name"),
        Refusal("{\"maxRevision\"", "Expected a colon"),
        Refusal("{\"maxRevision\" 0}", "Expected a colon"),
        Refusal("{\"maxRevision\":", "ends too early"),
        Refusal("{\"maxRevision\":0", "ends too early"),
        Refusal("{\"maxRevision\":0,}", "Expected a member name"),
        Refusal("{maxRevision:0}", "Expected a member name"),
        Refusal("{'maxRevision':0}", "Expected a member name"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[]}x", "goes on after its end"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[]}{}", "goes on after its end"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[]}\u{0}", "goes on after its end"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[{}{}]}", "unexpected character"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[{},]}", "unexpected character"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[}", "unexpected character"),
        Refusal("{\"maxRevision\":0 \"changeSets\":[]}", "unexpected character"),
        Refusal("// a comment\n{\"maxRevision\":0,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"maxRevision\":01,\"changeSets\":[]}", "zero too many"),
        Refusal("{\"maxRevision\":+1,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"maxRevision\":.5,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"maxRevision\":1.,\"changeSets\":[]}", "lacks a digit"),
        Refusal("{\"maxRevision\":1e,\"changeSets\":[]}", "lacks a digit"),
        Refusal("{\"maxRevision\":1e+,\"changeSets\":[]}", "lacks a digit"),
        Refusal("{\"maxRevision\":-,\"changeSets\":[]}", "lacks a digit"),
        Refusal("{\"maxRevision\":0x10,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"maxRevision\":NaN,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"maxRevision\":Infinity,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"x\":tru,\"maxRevision\":0,\"changeSets\":[]}", "unexpected character"),
        Refusal("{\"x\":nul", "unexpected character"),
        Refusal("{\"x\":True}", "unexpected character"),
        Refusal("{\"clientId\":\"a", "ends inside a text"),
        Refusal("{\"clientId\":\"a\\", "ends inside a text"),
        Refusal("{\"clientId\":\"a\\\"}", "ends inside a text"),
        Refusal(text: [0x0A], "control character"),
        Refusal(text: [0x00], "control character"),
        Refusal(text: [UInt8]("\\x".utf8), "escape JSON does not know"),
        Refusal(text: [UInt8]("\\U0041".utf8), "escape JSON does not know"),
        Refusal(text: [UInt8]("\\u00g1".utf8), "four hexadecimal digits"),
        Refusal(text: [UInt8]("\\u12".utf8), "four hexadecimal digits"),
        Refusal(text: [UInt8]("\\ud800".utf8), "without its other half"),
        Refusal(text: [UInt8]("\\udc00".utf8), "without its other half"),
        Refusal(text: [UInt8]("\\ud800\\ud800".utf8), "without its other half"),
        Refusal(text: [UInt8]("\\ud800\\n".utf8), "without its other half"),
        Refusal(text: [0x80], "not UTF-8"),
        Refusal(text: [0xC0, 0x80], "not UTF-8"),
        Refusal(text: [0xC1, 0xBF], "not UTF-8"),
        Refusal(text: [0xE0, 0x9F, 0xBF], "not UTF-8"),
        Refusal(text: [0xED, 0xA0, 0x80], "not UTF-8"),
        Refusal(text: [0xF0, 0x8F, 0xBF, 0xBF], "not UTF-8"),
        Refusal(text: [0xF4, 0x90, 0x80, 0x80], "not UTF-8"),
        Refusal(text: [0xF5, 0x80, 0x80, 0x80], "not UTF-8"),
        Refusal(text: [0xFF], "not UTF-8"),
        Refusal(text: [0xE2, 0x82], "not UTF-8"),
        Refusal(text: [0xE2, 0x28, 0xA1], "not UTF-8"),
        Refusal(text: [0xF0, 0x9F, 0x98], "not UTF-8"),
        Refusal("{\"maxRevision\":0,\"maxRevision\":0,\"changeSets\":[]}", "twice"),
        Refusal("{\"maxRevision\":0,\"max\\u0052evision\":0,\"changeSets\":[]}", "twice"),
        Refusal("{\"x\":{\"a\":1,\"a\":1},\"maxRevision\":0,\"changeSets\":[]}", "twice"),
    ]

    static let wrongShape: [Refusal] = [
        Refusal("[]", "Expected an object"),
        Refusal("null", "Expected an object"),
        Refusal("\"maxRevision\"", "Expected an object"),
        Refusal("7", "Expected an object"),
        Refusal("{}", "maxRevision is missing"),
        Refusal("{\"changeSets\":[]}", "maxRevision is missing"),
        Refusal("{\"maxRevision\":0}", "changeSets is missing"),
        Refusal("{\"maxRevision\":-1,\"changeSets\":[]}", "0 or more"),
        Refusal("{\"maxRevision\":\"0\",\"changeSets\":[]}", "Expected an integer"),
        Refusal("{\"maxRevision\":null,\"changeSets\":[]}", "Expected an integer"),
        Refusal("{\"maxRevision\":1.0,\"changeSets\":[]}", "without fraction"),
        Refusal("{\"maxRevision\":1e3,\"changeSets\":[]}", "without fraction"),
        Refusal("{\"maxRevision\":9223372036854775808,\"changeSets\":[]}", "64 bits"),
        Refusal("{\"maxRevision\":99999999999999999999999,\"changeSets\":[]}", "64 bits"),
        Refusal("{\"maxRevision\":0,\"changeSets\":{}}", "Expected an array"),
        Refusal("{\"maxRevision\":0,\"changeSets\":null}", "Expected an array"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"clientId\":7}", "Expected a text"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"clientId\":\"\"}", "empty or longer"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"clientId\":null}", "Expected a text"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"protocol\":\"1\"}", "Expected an integer"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"acknowledged\":-1}", "0 or more"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"schema\":[]}", "Expected a text"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"lineage\":{}}", "Expected a text"),
        Refusal("{\"maxRevision\":0,\"changeSets\":[],\"dataSet\":true}", "Expected a text"),
    ]
}

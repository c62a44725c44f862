import Testing

/// A change set without its braces, and a part of the sentence about it.
struct Defect: Sendable, CustomTestStringConvertible {
    var members: String
    var words: String

    init(_ members: String, _ words: String) {
        self.members = members
        self.words = words
    }

    /// The member of a type `t`.
    init(t: String, _ words: String) {
        self.init(#""types":["t"],"t":{"# + t + "}", words)
    }

    /// The attributes of an updated record 1.
    init(attributes: String, _ words: String) {
        self.init(
            t: #""create":[],"update":[1],"delete":[],"attributes":{"1":{"# + attributes + "}}",
            words)
    }

    var testDescription: String { String(members.prefix(80)) }
}

extension Defect {
    static let members: [Defect] = [
        Defect(#""types":{}"#, "Expected an array"),
        Defect(#""types":null"#, "Expected an array"),
        Defect(#""types":[1]"#, "Expected a text"),
        Defect(#""types":[""]"#, "empty or longer"),
        Defect(#""types":["t","t"],"t":{}"#, "names a type twice"),
        Defect(#""types":["t"]"#, "has no member"),
        Defect(#""types":["t"],"t":[]"#, "Expected an object"),
        Defect(#""types":["t"],"t":null"#, "Expected an object"),
        Defect(#""types":["conflict"],"conflict":{}"#, "the wire uses itself"),
        Defect(#""types":["__proto__"],"__proto__":{}"#, "the wire uses itself"),
        Defect(#""types":[],"t":{}"#, "neither known nor listed"),
        Defect(#""t":{}"#, "neither known nor listed"),
        Defect(#""t":{},"types":["u"],"u":{}"#, "neither known nor listed"),
        Defect(#""types":[],"t":[]"#, "neither known nor listed"),
        Defect(#""types":[],"sequence":-1"#, "0 or more"),
        Defect(#""types":[],"sequence":"1""#, "Expected an integer"),
        Defect(#""types":[],"sequence":1.5"#, "without fraction"),
        Defect(#""types":[],"seen":9223372036854775808"#, "64 bits"),
        Defect(#""types":[],"identifier":7"#, "Expected a text"),
        Defect(#""types":[],"identifier":"""#, "empty or longer"),
        Defect(#""types":[],"dependencyIdentifier":null"#, "Expected a text"),
        Defect(#""types":[],"timestamp":1700000000"#, "Expected a text"),
        Defect(#""types":[],"revision":-4"#, "0 or more"),
        Defect(#""types":[],"conflict":"no""#, "true or false"),
        Defect(#""types":[],"reason":[]"#, "Expected a text"),
        Defect(#""types":[],"message":{}"#, "Expected a text"),
        Defect(#""types":[],"retryAfter":true"#, "Expected an integer"),
    ]

    static let records: [Defect] = [
        Defect(t: #""create":{}"#, "Expected an array"),
        Defect(t: #""create":null"#, "Expected an array"),
        Defect(t: #""creates":[]"#, "none of create"),
        Defect(t: #""delete":[0]"#, "Zero is no record's id"),
        Defect(t: #""delete":[-0]"#, "Zero is no record's id"),
        Defect(t: #""delete":[1.0]"#, "without fraction"),
        Defect(t: #""delete":[1e2]"#, "without fraction"),
        Defect(t: #""delete":[null]"#, "Expected an integer"),
        Defect(t: #""delete":[true]"#, "Expected an integer"),
        Defect(t: #""delete":[[1]]"#, "Expected an integer"),
        Defect(t: #""delete":[9223372036854775808]"#, "64 bits"),
        Defect(t: #""delete":[-9223372036854775809]"#, "64 bits"),
        Defect(t: #""delete":[1,1]"#, "twice in one"),
        Defect(t: #""delete":[1,2,1]"#, "twice in one"),
        Defect(t: #""delete":[1,-2,1]"#, "twice in one"),
        Defect(t: #""delete":["a","a"]"#, "twice in one"),
        Defect(t: #""delete":["a","\u0061"]"#, "twice in one"),
        Defect(t: #""update":[1],"delete":[1],"attributes":{"1":{}}"#, "two of the lists"),
        Defect(t: #""create":[-1],"update":[-1],"attributes":{"-1":{}}"#, "two of the lists"),
        Defect(t: #""create":[-1]"#, "no entry in `attributes`"),
        Defect(t: #""update":[1],"attributes":{}"#, "no entry in `attributes`"),
        Defect(t: #""update":[1,2],"attributes":{"2":{}}"#, "no entry in `attributes`"),
        Defect(t: #""attributes":{"1":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":{"1":{},"2":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":{"01":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":{"+1":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":{"1.0":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":{"":{}}"#, "none of create, update, delete"),
        Defect(t: #""update":[1],"attributes":[]"#, "Expected an object"),
        Defect(t: #""update":[1],"attributes":{"1":[]}"#, "Expected an object"),
        Defect(t: #""update":[1],"attributes":{"1":null}"#, "Expected an object"),
        Defect(attributes: #""a":[]"#, "array or an object"),
        Defect(attributes: #""a":{"b":1}"#, "array or an object"),
        Defect(attributes: #""a":1e999"#, "too large"),
        Defect(attributes: #""a":-9223372036854775809"#, "64 bits"),
        Defect(attributes: #""":1"#, "empty or longer"),
        Defect(attributes: "\"" + String(repeating: "n", count: 129) + "\":1", "empty or longer"),
        Defect(attributes: #""revision":-1"#, "0 or more"),
        Defect(attributes: #""revision":"1""#, "Expected an integer"),
        Defect(attributes: #""revision":null"#, "Expected an integer"),
        Defect(attributes: #""revision":1.5"#, "without fraction"),
        Defect(attributes: #""__oldId__":0"#, "Zero is no record's id"),
        Defect(attributes: #""__oldId__":null"#, "Expected an integer"),
        Defect(attributes: #""__proto__":1"#, "the wire does not allow"),
        Defect(attributes: #""constructor":1"#, "the wire does not allow"),
        Defect(attributes: #""prototype":1"#, "the wire does not allow"),
    ]
}

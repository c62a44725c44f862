internal import MartletModel
internal import MartletProtocol

/// The endpoint of a request.
enum MockEndpoint: String, CaseIterable, Sendable {
    case schema
    case sync
    /// `GET /deltas` with any kind of answer.
    case deltas
    /// `GET /deltas` for one answer, at once or after a wait.
    case poll
    /// `GET /deltas` as server-sent events.
    case stream
    /// `GET /snapshot` and the files below it.
    case snapshot
    /// Any of these, and any other address.
    case any

    /// Returns whether a step for this endpoint applies to a request to another one.
    func covers(_ asked: MockEndpoint) -> Bool {
        switch self {
        case .any: true
        case .deltas: asked == .poll || asked == .stream
        default: self == asked
        }
    }
}

/// One step of a script: the request that it fits, and the answer.
struct MockStep: Sendable {
    let name: String
    let endpoint: MockEndpoint
    /// The conditions on a request under which this step is used.
    let when: [MockCondition]
    /// The conditions that the answered request should meet; the verdict names those that it does
    /// not.
    let expect: [MockCondition]
    /// The number of times that the step is used; nil for any number.
    let times: Int?
    /// Whether the verdict accepts that the step was used fewer times.
    let isOptional: Bool
    let answer: MockAnswer
}

/// A condition on a member of a request.
struct MockCondition: Sendable {
    enum Test: Sendable {
        case equals(ScriptNode)
        case atLeast(Int64)
        case atMost(Int64)
        case exists(Bool)
        case contains(String)
    }

    /// The path of the member, such as `since`, `body.changeSets.count`, `header.accept`.
    let path: String
    let test: Test

    /// Returns a sentence about a wrong value; nil if the value meets the condition.
    func complaint(about found: ScriptNode?) -> String? {
        let said =
            found.map { String(decoding: $0.compact.prefix(120), as: UTF8.self) } ?? "nothing"
        func unless(_ isMet: Bool, _ expected: String) -> String? {
            isMet ? nil : "\(path) was \(said), expected \(expected)"
        }
        switch test {
        case .equals(let value):
            return unless(found == value, String(decoding: value.compact, as: UTF8.self))
        case .atLeast(let number):
            return unless(found?.integer.map { $0 >= number } ?? false, "at least \(number)")
        case .atMost(let number):
            return unless(found?.integer.map { $0 <= number } ?? false, "at most \(number)")
        case .exists(let flag):
            return unless((found != nil) == flag, flag ? "something" : "nothing")
        case .contains(let text):
            return unless(found?.text?.contains(text) ?? false, "a text with “\(text)” in it")
        }
    }
}

/// The answer to one request.
struct MockAnswer: Sendable {
    var status = 200
    var headers: [(name: String, value: String)] = []
    /// The milliseconds before the answer's head.
    var delay: Int64 = 0
    /// Whether the connection is closed without any answer.
    var hangsUp = false
    /// Whether the body is compressed, with the header for it.
    var isCompressed = false
    /// The pace of a slow body: a number of bytes, then a pause in milliseconds; nil for full
    /// speed.
    var drip: (bytes: Int, pause: Int64)?
    /// The parts of the body. Only a stream has more than one.
    var parts: [MockPart] = []
}

/// One piece of an answer's body.
struct MockPart: Sendable {
    enum Content: Sendable {
        /// The answer of the log of accepted sets.
        case log
        /// The log's answer to `POST /sync`, with a refusal of every new set.
        case refusal(RefusalReason, message: String, retryAfter: Int64?)
        /// JSON or any other text, as it is in the script.
        case bytes([UInt8])
        /// A batch of deltas. In a stream it becomes an event with this id.
        case batch([UInt8], id: Int64?)
        case generated(MockGenerator)
        case problem(Problem)
        /// The bytes of a file, or the requested range of them.
        case file([UInt8])
        /// The stream stays open and sends nothing until the client leaves.
        case hold
        /// The stream ends properly.
        case end
    }

    var content: Content
    /// The milliseconds before this part.
    var delay: Int64 = 0
    var times = 1
    /// The number of bytes of this part after which the connection is closed; nil sends all.
    var cut: Int?
    /// The number of bytes of this part after which the body ends properly; nil sends all.
    var truncate: Int?
}

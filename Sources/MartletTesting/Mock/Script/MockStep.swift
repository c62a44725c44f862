internal import MartletModel
internal import MartletProtocol

/// What a request asks for.
enum MockEndpoint: String, CaseIterable, Sendable {
    case schema
    case sync
    /// `GET /deltas`, however it is answered.
    case deltas
    /// `GET /deltas` for one answer, at once or after a wait.
    case poll
    /// `GET /deltas` as server-sent events.
    case stream
    /// `GET /snapshot` and the files below it.
    case snapshot
    /// Any of them, and any other address.
    case any

    /// Whether a step for this endpoint is meant by a request to another.
    func covers(_ asked: MockEndpoint) -> Bool {
        switch self {
        case .any: true
        case .deltas: asked == .poll || asked == .stream
        default: self == asked
        }
    }
}

/// One step of a script: which request it is for, and what it answers.
struct MockStep: Sendable {
    let name: String
    let endpoint: MockEndpoint
    /// What a request must say for this step to be taken.
    let when: [MockCondition]
    /// What a request that the step answers should say; the verdict tells where one does not.
    let expect: [MockCondition]
    /// How often it is used; nil for any number of times.
    let times: Int?
    /// Whether the verdict minds that it was used fewer times.
    let isOptional: Bool
    let answer: MockAnswer
}

/// What a member of a request should be.
struct MockCondition: Sendable {
    enum Test: Sendable {
        case equals(ScriptNode)
        case atLeast(Int64)
        case atMost(Int64)
        case exists(Bool)
        case contains(String)
    }

    /// Such as `since`, `body.changeSets.count`, `header.accept`.
    let path: String
    let test: Test

    /// What is wrong with the value found; nil where it is as it should be.
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
    /// Milliseconds before the answer's head.
    var delay: Int64 = 0
    /// Whether the connection is closed without any answer.
    var hangsUp = false
    /// Whether the body is compressed and says so.
    var isCompressed = false
    /// Sends the body slowly: so many bytes, then a pause of so many milliseconds.
    var drip: (bytes: Int, pause: Int64)?
    /// What the body consists of; more than one only in a stream.
    var parts: [MockPart] = []
}

/// One piece of an answer's body.
struct MockPart: Sendable {
    enum Content: Sendable {
        /// What the log of accepted sets has to say.
        case log
        /// The log's answer to `POST /sync`, with every set in it refused that is not decided yet.
        case refusal(RefusalReason, message: String, retryAfter: Int64?)
        /// JSON, or any text, as the script has it.
        case bytes([UInt8])
        /// A batch of deltas; in a stream it becomes an event with this id.
        case batch([UInt8], id: Int64?)
        case generated(MockGenerator)
        case problem(Problem)
        /// A file's bytes, or the range of them that is asked for.
        case file([UInt8])
        /// A stream stays open and says nothing until the client leaves.
        case hold
        /// A stream ends in good order.
        case end
    }

    var content: Content
    /// Milliseconds before it.
    var delay: Int64 = 0
    var times = 1
    /// The connection is closed after so many bytes of this part.
    var cut: Int?
    /// The body ends in good order after so many bytes of this part.
    var truncate: Int?
}

internal import MartletDevice
internal import MartletModel
internal import MartletProtocol

extension TransportFailure {
    /// Creates a failure from an answer whose status is not 200.
    init(refusal answer: StreamingAnswer, _ body: [UInt8]) {
        let problem = SyncCoder.decodeProblem(body, status: answer.status)
        self.init(
            message: problem.detail, status: answer.status, problem: problem,
            retryAfter: answer.retryAfter ?? problem.retryAfter)
    }

    /// Creates a failure from an answer with status 200 that cannot be read.
    /// - Parameters:
    ///   - name: The name of the thing that was requested.
    ///   - member: A member that it always has.
    init(
        strangersAnswer answer: StreamingAnswer, _ body: [UInt8], _ name: String, member: String,
        _ error: any Error
    ) {
        let isOther = !AnswerFormat.isWhole(body, member: member)
        self.init(
            message: isOther
                ? Problem.unrecognized(status: answer.status).detail
                : "The server's \(name) cannot be read: \(error)",
            status: answer.status, problem: isOther ? .unrecognized(status: answer.status) : nil)
    }
}

extension TransportAnswer {
    /// Whether this may be the server's own answer. A status of 200 needs the format of an answer.
    var isOfServer: Bool {
        guard status != 200 else {
            return AnswerFormat.hasForm(body)
        }
        return SyncCoder.decodeProblem(body, status: status).isOfServer
    }

    /// Whether a proxy refused a request of this size. The server's own limit does not count.
    var isRefusalOfSize: Bool {
        status == 413 && !SyncCoder.decodeProblem(body, status: status).isOfServer
    }
}

extension SyncError {
    /// Creates an error for the caller from a failure of the network.
    init(_ failure: TransportFailure) {
        guard let status = failure.status else {
            self.init(failure.isUntrusted ? .untrusted : .offline, failure.message)
            return
        }
        guard let problem = failure.problem else {
            self.init(.violation, failure.message)
            return
        }
        self.init(Kind(problem, status: status), failure.message)
    }
}

internal import MartletModel
internal import MartletProtocol

extension TransportFailure {
    /// Makes a failure of an answer whose status is not 200.
    init(refusal answer: StreamingAnswer, _ body: [UInt8]) {
        let problem = SyncCoder.decodeProblem(body, status: answer.status)
        self.init(
            message: problem.detail, status: answer.status, problem: problem,
            retryAfter: answer.retryAfter ?? problem.retryAfter)
    }

    /// Makes a failure of an answer with status 200 that cannot be read.
    /// - Parameters:
    ///   - name: The name of the thing that was requested.
    ///   - member: A member that it always has.
    init(
        foreignAnswer answer: StreamingAnswer, _ body: [UInt8], _ name: String, member: String,
        _ error: any Error
    ) {
        let isOther = !TransportAnswer.isWhole(body, member: member)
        self.init(
            message: isOther
                ? Problem.foreign(status: answer.status).detail
                : "The server's \(name) cannot be read: \(error)",
            status: answer.status, problem: isOther ? .foreign(status: answer.status) : nil)
    }
}

extension TransportAnswer {
    /// Returns whether a body has the form of an answer: an object that has its end, and this member. What
    /// another program answers has not; neither has half of an answer, if the cut is not behind an inner bracket.
    static func hasForm(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        body.first == UInt8(ascii: "{") && body.last == UInt8(ascii: "}")
            && body.contains(Array("\"\(member)\"".utf8))
    }

    /// Returns whether a body has the form of an answer, and all of it is JSON. Half of an answer has not.
    static func isWhole(_ body: [UInt8], member: String = "maxRevision") -> Bool {
        guard hasForm(body, member: member) else { return false }
        var json = JSONReader(body)
        return (try? json.skipValue()) != nil && (try? json.finish()) != nil
    }

    /// Whether the server itself may have said this. A status of 200 needs the form of an answer.
    var isOfServer: Bool {
        guard status != 200 else {
            return Self.hasForm(body)
        }
        return SyncCoder.decodeProblem(body, status: status).isOfServer
    }

    /// Whether a proxy refused a request of this size. The server's own limit is another matter.
    var isRefusalOfSize: Bool {
        status == 413 && !SyncCoder.decodeProblem(body, status: status).isOfServer
    }
}

extension SyncError {
    /// Makes an error for a body that is no answer: half of one, or a page of a proxy or portal.
    init(unreadable body: [UInt8], _ fault: any Error) {
        guard TransportAnswer.isWhole(body) else {
            self.init(.offline, Problem.foreign(status: 200).detail)
            return
        }
        self.init(.violation, "The answer cannot be read: \(fault)")
    }

    /// Makes an error for the caller from a failure of the network.
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

extension SyncError.Kind {
    /// Makes an error from an answer that refuses. Only a refusal by the server itself stops a
    /// client.
    init(_ problem: Problem, status: Int) {
        self =
            switch (status, problem.kind) {
            case _ where !problem.isOfServer: .offline
            case (401, _): .unauthorized
            case (_, "versionUnsupported"): .versionUnsupported
            case (_, "clientBound"): .wrongUser
            case (_, "tooManyDevices"): .tooManyDevices
            case (403, _), (409, _): .wrongDataSet
            case (408, _), (429, _), (500..., _): .busy
            default: .rejected
            }
    }
}

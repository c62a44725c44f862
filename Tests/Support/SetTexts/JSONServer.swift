package import MartletModel
package import MartletProtocol
package import MartletServerCore

/// A data set that a test drives with JSON, as devices do.
package protocol JSONServer: AnyObject {
    var node: DataSetNode { get }
    /// Has a batch of requests decided on, and returns one result for each.
    func process(
        _ texts: [String], as principal: Principal, gzip: Bool
    ) throws -> [Result<PreparedAnswer, Problem>]
    /// Returns rows as lines, columns parted by bars, nulls as dashes.
    func rows(_ sql: String) throws -> String
}

/// The server's answer is not one that the test can go on with.
package struct UnexpectedAnswer: Error {
    package init() {}
}

extension Principal {
    /// The person in tests that need no second one.
    package static let ada = Principal(name: "tablet", user: "ada")
}

extension JSONServer {
    package func admitted(
        _ json: String, as principal: Principal = .ada, gzip: Bool = false
    ) throws -> AdmittedRequest {
        let bytes = Array(json.utf8)
        return AdmittedRequest(
            principal: principal, request: try SyncCoder.decodeRequest(bytes), source: bytes,
            acceptsGzip: gzip)
    }

    package func raw(
        _ json: String, as principal: Principal = .ada, gzip: Bool = false
    ) throws -> PreparedAnswer {
        try process([json], as: principal, gzip: gzip)[0].get()
    }

    /// Returns the answer as the text that went out.
    package func text(_ json: String, as principal: Principal = .ada) throws -> String {
        String(decoding: try raw(json, as: principal).body, as: UTF8.self)
    }

    package func answer(_ json: String, as principal: Principal = .ada) throws -> SyncAnswer {
        try SyncCoder.decodeAnswer(raw(json, as: principal).body)
    }

    /// Returns the problem with which a request is refused; nil if it is answered.
    package func problem(_ json: String, as principal: Principal = .ada) throws -> Problem? {
        guard case .failure(let problem) = try process([json], as: principal, gzip: false)[0]
        else { return nil }
        return problem
    }

    /// Sends one change set of a device that is up to date, and returns the last set of the answer,
    /// which says what became of it.
    @discardableResult
    package func send(
        _ set: String, from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = .ada
    ) throws -> ChangeSet {
        let answer = try answer(request(client, at: revision, set), as: principal)
        guard let last = answer.changeSets.last else { throw UnexpectedAnswer() }
        return last
    }

    /// Sends one change set that was built in code.
    @discardableResult
    package func send(
        _ set: SetText, from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = .ada
    ) throws -> ChangeSet {
        try send(set.description, from: client, at: revision, as: principal)
    }

    /// Sends several sets in one request.
    package func exchange(
        _ sets: [SetText], from client: String = "d1", at revision: Revision? = nil,
        as principal: Principal = .ada
    ) throws -> SyncAnswer {
        let list = sets.map(\.description).joined(separator: ",")
        return try answer(request(client, at: revision, list), as: principal)
    }

    /// Has a device say up to which of its sets it has the answers. It does so together with a set
    /// that is refused.
    package func acknowledge(_ sequence: Int, _ client: String, type: String = "teams") throws {
        let set = SetText("ack-\(client)-\(sequence)", sequence: 9_000 + sequence)
            .update(type, "99999", #""revision":1,"name":"Z""#)
        let answer = try answer(
            request(client, at: nil, set.description, "\"acknowledged\":\(sequence),"))
        guard answer.changeSets.last?.conflict == true else { throw UnexpectedAnswer() }
    }

    private func request(
        _ client: String, at revision: Revision?, _ sets: String, _ members: String = ""
    ) -> String {
        """
        {"clientId":"\(client)","maxRevision":\(revision ?? node.head.revision),\
        \(members)"changeSets":[\(sets)]}
        """
    }
}

extension JSONServer {
    /// Returns all that the server has of the data set, as text; see `ServerText`.
    package func text() throws -> String {
        try ServerText(node.schema, query: rows).text()
    }
}

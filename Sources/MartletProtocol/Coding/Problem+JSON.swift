internal import MartletModel

extension SyncCoder {
    /// Encodes a problem as `application/problem+json` (RFC 9457): `type` (always `about:blank`),
    /// `status`, `kind`, `detail`, and `retryAfter` if it is present.
    package static func encode(_ problem: Problem) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("type", "about:blank")
        json.member("status", Int64(problem.status))
        json.member("kind", problem.kind)
        json.member("detail", problem.detail)
        json.member("retryAfter", problem.retryAfter)
        json.endObject()
        return json.bytes
    }

    /// Reads a problem. A proxy or portal may answer with anything: a body that is no problem of
    /// the server becomes `Problem.unrecognized`.
    package static func decodeProblem(_ bytes: [UInt8], status: Int) -> Problem {
        var problem = Problem.unrecognized(status: status)
        guard bytes.count <= Limits.inflatedBytes else { return problem }
        var found = problem
        var json = JSONReader(bytes)
        do {
            try json.readObject { (json, name) throws(WireFault) in
                let byte = json.peek()
                let isText = byte == UInt8(ascii: "\"")
                switch name {
                case "kind" where isText: found.kind = try json.readText()
                case "detail" where isText: found.detail = try json.readText()
                case "retryAfter" where UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte:
                    if case .integer(let seconds) = try json.readNumber() {
                        found.retryAfter = seconds
                    }
                default: try json.skipValue()
                }
            }
            try json.finish()
            // The words of another program are not shown as those of the server.
            if found.isOfServer { problem = found }
        } catch {
            return problem
        }
        return problem
    }
}

extension Problem {
    /// The kind of a problem whose body could not be read.
    package static let unknownKind = "unknown"
}

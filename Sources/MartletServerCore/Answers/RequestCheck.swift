import MartletModel
import MartletProtocol

/// Checks whether a whole request is acceptable, before any of its sets is read.
enum RequestCheck {
    static func problem(with admitted: AdmittedRequest, identity: String, head: LogHead) -> Problem?
    {
        let request = admitted.request
        if request.maxRevision < 0 {
            return Problem(
                status: 400, kind: "invalidRequest",
                detail: "“maxRevision” is negative; expected the newest revision the device has")
        }
        if let check = request.check, check.revision > request.maxRevision {
            return Problem(
                status: 400, kind: "invalidRequest",
                detail: "“check” is about a newer revision than “maxRevision”")
        }
        if let version = request.protocolVersion,
            !(WireVersion.oldest...WireVersion.current).contains(version)
        {
            return Problem(
                status: 400, kind: "versionUnsupported",
                detail: """
                    the device speaks version \(version) of the protocol, the server versions \
                    \(WireVersion.oldest) to \(WireVersion.current); update the older of the two
                    """)
        }
        if let clientID = request.clientID,
            clientID.isEmpty || clientID.utf8.count > Limits.nameBytes
        {
            return Problem(
                status: 400, kind: "invalidRequest",
                detail: "“clientId” is empty or longer than \(Limits.nameBytes) bytes")
        }
        if !names(of: request).allSatisfy(isStorable) {
            return Problem(
                status: 400, kind: "invalidRequest",
                detail: """
                    “clientId”, “rules”, or an “identifier” or “dependencyIdentifier” of a change set, holds \
                    NUL (U+0000), which not every database can keep; such a name cannot be told \
                    from another one, so name them without it
                    """)
        }
        if let dataSet = request.dataSet, dataSet != identity {
            return Problem(
                status: 409, kind: "wrongDataSet",
                detail: """
                    the device belongs to another data set than the one this server keeps here; \
                    nothing was taken from it
                    """)
        }
        if request.maxRevision > head.revision {
            return Problem(
                status: 409, kind: "revisionAhead",
                detail: """
                    the device has revision \(request.maxRevision), the server only \
                    \(head.revision): the data set was restored from an older copy or recreated
                    """)
        }
        return nil
    }

    /// Returns the names in a request that a server keeps and finds by their bytes.
    private static func names(of request: SyncRequest) -> [String] {
        var names = [request.clientID, request.rules].compactMap { $0 }
        for set in request.changeSets {
            if let identifier = set.identifier { names.append(identifier) }
            if let dependency = set.dependencyIdentifier { names.append(dependency) }
        }
        return names
    }

    /// Returns whether every storage can keep a text as it is. PostgreSQL stores no text with NUL.
    private static func isStorable(_ name: String) -> Bool { !name.utf8.contains(0) }

    /// Returns whether a problem says that the device's history and the server's differ.
    static func isOfHistory(_ problem: Problem) -> Bool {
        problem.kind == "revisionAhead" || problem.kind == "lineage"
    }

    /// Returns whether a problem says that nobody knows which records the device has.
    static func isOfRecords(_ problem: Problem) -> Bool {
        isOfHistory(problem) || problem.kind == view.kind
    }

    static let lineage = Problem(
        status: 409, kind: "lineage",
        detail: """
            the device's history and the server's differ before the device's revision: the data \
            set was restored from an older copy or recreated
            """)

    static let view = Problem(
        status: 409, kind: "view",
        detail: """
            the server does not know that the device's user was given the records that the device has; \
            the device has to fetch all that its user may see again
            """)

    static let clientBound = Problem(
        status: 403, kind: "clientBound",
        detail: """
            the “clientId” belongs to another user; the device needs one of its own, or, if the \
            server's data was restored without its tokens, the token that it had
            """)

    static func tooManyDevices(_ most: Int) -> Problem {
        Problem(
            status: 403, kind: "tooManyDevices",
            detail: """
                the user of the token has \(most) devices already, which is as many as a user may \
                have; give the device's user a token of another user
                """)
    }

    static let identityReused = Problem(
        status: 409, kind: "identityReused",
        detail: """
            the device numbered a change set with a number it has used for another: this file was \
            restored from a copy, or is used in two places; it needs a new “clientId”
            """)

    static func problem(for fault: StorageFault) -> Problem {
        switch fault.kind {
        case .busy:
            Problem(
                status: 503, kind: "busy",
                detail: "another program has locked the data set; try again",
                retryAfter: 1)
        case .full:
            Problem(
                status: 503, kind: "storage",
                detail: "the server has no room left on its disk; send the same again later",
                retryAfter: 30)
        case .moved:
            Problem(
                status: 503, kind: "storage",
                detail: """
                    what the data set is stored in was removed or replaced on the server, whose log says \
                    what to do there; send the same again later
                    """,
                retryAfter: 30)
        case .changed:
            Problem(
                status: 503, kind: "storage",
                detail: """
                    the data set's tables have changed, and the server has yet to take them up as \
                    they are now; send the same again
                    """,
                retryAfter: 5)
        case .refused:
            Problem(
                status: 503, kind: "storage",
                detail: """
                    the database refuses a part of the request; the server's log says what to correct \
                    there; then send the same request again
                    """,
                retryAfter: 60)
        case .failed, .rolledBack, .unreachable:
            Problem(
                status: 503, kind: "storage",
                detail: "the server could not read or write the data set; send the same again",
                retryAfter: 5)
        }
    }
}

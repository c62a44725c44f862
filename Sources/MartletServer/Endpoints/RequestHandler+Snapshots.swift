internal import DeflateKit
internal import HTTPKit
internal import MartletModel
internal import MartletProtocol

extension RequestHandler {
    /// Answers `GET /snapshot` with the list of the newest snapshot's files.
    func snapshot(_ request: HTTPRequest) async -> Outcome {
        await snapshots(request) { token, client, service in
            let (found, mayCome) = try await service.manifest(for: token.principal, client)
            guard let manifest = found else {
                return Outcome(Self.noSnapshot(isEmpty: service.isEmpty, mayCome: mayCome))
            }
            let document = SyncCoder.encode(manifest)
            let acceptsGzip = ContentCoding.acceptsGzip(request.headers["accept-encoding"])
            return Outcome.json(
                document,
                gzip: acceptsGzip && document.count > 512 ? OneShotGzip.compress(document) : nil)
        }
    }

    /// Answers `GET /snapshot/HASH` with one file, or a range of it.
    func snapshotFile(_ request: HTTPRequest) async -> Outcome {
        await snapshots(request) { token, client, service in
            guard let coding = Self.coding(request.headers.values("accept")) else {
                return Outcome(Self.notAcceptable)
            }
            let hash = String(request.path.dropFirst(Self.snapshotPrefix.count))
            // The hash chooses among the files that the manifests name; it is never a path.
            guard
                let found = try await service.snapshotFile(
                    hash, coding, for: token.principal, client),
                let file = try await FileToSend.open(found.path), file.count == found.bytes
            else {
                // If the file should exist, the service forgets the snapshot. Those of views were looked at above.
                _ = service.snapshots.manifest()
                return Outcome(Self.noFile)
            }
            return answer(request, file, coding, etag: "\"\(hash)-\(coding.rawValue)\"")
        }
    }

    static let snapshotPrefix = "/snapshot/"

    /// - Parameter body: Answers with the token, the name of the device, and the data set.
    private func snapshots(
        _ request: HTTPRequest,
        _ body: (TokenRecord, String?, DataSetService) async throws -> Outcome
    ) async -> Outcome {
        do {
            let token = try await admitted(request)
            let client = try QueryItems(request.query, names: ["client"]).name("client")
            var outcome = try await dataSets.use(token.dataSet) {
                try await body(token, client, $0)
            }
            outcome.note(token)
            outcome.device = client
            return outcome
        } catch {
            return failed(error)
        }
    }

    private func answer(
        _ request: HTTPRequest, _ file: FileToSend, _ coding: SnapshotCoding, etag: String
    ) -> Outcome {
        var headers = [
            HTTPField("Content-Type", coding.mediaType), HTTPField("ETag", etag),
            HTTPField("Accept-Ranges", "bytes"), HTTPField("Vary", "Accept"),
            // A client may keep the file, because its content never changes.
            HTTPField("Cache-Control", "private, immutable"),
        ]
        // A range of a different file than the client began with would be of no use to it.
        let isSame = request.headers["if-range"].map { $0 == etag } ?? true
        let range = isSame ? request.headers["range"] : nil
        var status = 200
        var bytes = 0..<file.count
        switch ByteRange.answer(to: range, count: file.count) {
        case .whole: break
        case .part(let part):
            status = 206
            bytes = part
            headers.append(
                HTTPField(
                    "Content-Range",
                    "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(file.count)"))
        case .unsatisfiable:
            var outcome = Outcome(Self.unsatisfiable(file.count))
            outcome.response.headers.append(
                HTTPField("Content-Range", "bytes */\(file.count)"))
            return outcome
        }
        var response = HTTPResponse(status: status, headers: headers)
        response.streamByteCount = Int64(bytes.count)
        response.stream = { [bytes, metrics] writer in
            try await FileStream.write(bytes, of: file, to: writer) {
                metrics.countSnapshotBytes($0)
            }
        }
        return Outcome(response)
    }

    /// Returns the coding that an `Accept` header asks for: gzip if it accepts anything, nil if it
    /// accepts neither coding.
    static func coding(_ accepted: [String]) -> SnapshotCoding? {
        guard !accepted.isEmpty else { return .gzip }
        let types = accepted.flatMap { $0.split(separator: ",") }.map { item in
            item.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased()
        }
        if types.contains(SnapshotCoding.zstd.mediaType) { return .zstd }
        let gzip = [SnapshotCoding.gzip.mediaType, "application/*", "*/*"]
        return types.contains(where: gzip.contains) ? .gzip : nil
    }

    // MARK: - Problems

    private static func noSnapshot(isEmpty: Bool, mayCome: Bool) -> Problem {
        let detail =
            if isEmpty {
                "The data set is empty; there is nothing to make a snapshot of."
            } else if mayCome {
                "There is no snapshot yet; try again later, or begin with POST /sync."
            } else {
                "There is no snapshot of the user's view, and none is made for now; begin with POST /sync."
            }
        return Problem(
            status: 404, kind: "noSnapshot", detail: detail,
            retryAfter: !isEmpty && mayCome ? 10 : nil)
    }

    private static let noFile = Problem(
        status: 404, kind: "noSnapshotFile",
        detail: "There is no such file any more; ask GET /snapshot which there are.")

    private static let notAcceptable = Problem(
        status: 406, kind: "notAcceptable",
        detail: "A snapshot's files are application/gzip or application/zstd.")

    private static func unsatisfiable(_ count: Int64) -> Problem {
        Problem(
            status: 416, kind: "rangeNotSatisfiable",
            detail: "The range begins behind the end of the file, which has \(count) bytes.")
    }
}

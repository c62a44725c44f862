internal import MartletProtocol
internal import MartletServerCore
internal import SystemKit

/// Answers the requests to one data set: from memory on the caller's thread, or from the log if
/// memory lacks something. It submits requests that need a decision to the writer's queue.
final class Reader: Sendable {
    typealias Response = Result<PreparedAnswer, Problem>

    private let feed: DataSetFeed
    private let metrics: Metrics
    private let health: WriterHealth
    private let queue: WriterQueue<Writer>
    private let log: Confined<LogReader>
    /// A separate reader for comparisons, which read whole tables, so that no other request waits
    /// for them.
    private let comparer: Confined<LogReader>
    private let comparisons = ComparisonRoom()
    /// The rooms for answers from memory, and for answers that wait for the log's one reader.
    ///
    /// Each data set has its own, so that a slow storage delays only its own requests, and none
    /// that memory can answer.
    private let (memoryRoom, logRoom) = (AnswerRoom(), AnswerRoom())

    /// Makes the reader of a data set. It connects to its storage at the first use, or now if that
    /// takes long.
    init(
        _ opened: OpenNode, _ queue: WriterQueue<Writer>, _ health: WriterHealth
    ) async throws {
        (feed, metrics) = (opened.feed, opened.reports.metrics)
        (self.queue, self.health) = (queue, health)
        let name = opened.reports.dataSet
        let makeReader: @Sendable () -> LogReader = {
            LogReader(
                feed: opened.feed, log: opened.readers.log(), check: opened.readers.check(),
                consistently: opened.consistently)
        }
        log = try await Confined.making(label: "martlet.reader.\(name)") { makeReader() }
        comparer = try await Confined.making(label: "martlet.comparer.\(name)") { makeReader() }
        // To connect to a database takes longer than most answers do.
        if opened.readers.isRemote {
            Task { [log] in try? await log.run { _ = try $0.catchUp() } }
        }
    }

    func stop() async {
        await log.end()
        await comparer.end()
    }

    /// Decides on a request's change sets, and answers the request.
    ///
    /// - Parameter claim: Takes the place in which the answer is made.
    func answer(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Response {
        guard request.request.changeSets.isEmpty else { return await decide(request, claim) }
        do { try await claim.take(in: memoryRoom) } catch { return .failure(.gone) }
        switch feed.answer(to: request) {
        case .answer(let answer):
            metrics.countPull(isHit: true)
            return .success(answer)
        case .problem(let problem): return .failure(problem)
        case .needsNode: return await decide(request, claim)
        case .needsLog:
            metrics.countPull(isHit: false)
            return await read(request, claim)
        }
    }

    /// Returns the deltas after a cursor if they were just made for another listener, or nil
    /// otherwise. Takes only a moment.
    func madeDeltas(_ request: DeltaRequest) -> DeltaBatchBytes? { feed.madeDeltas(request) }

    /// Returns the deltas after a cursor.
    ///
    /// - Parameter claim: Takes the place in which they are made.
    func deltas(
        _ request: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        do { try await claim.take(in: memoryRoom) } catch { return .failure(.gone) }
        let result = await batch(request, claim)
        if case .success(let batch) = result, batch.isDifference { metrics.countDifference() }
        return result
    }

    private func batch(
        _ request: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        switch feed.deltas(request) {
        case .batch(let batch): return .success(batch)
        case .problem(let problem): return .failure(problem)
        case .needsLog: break
        }
        guard !health.isMoved else { return .failure(.storage) }
        do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
        do {
            switch try await log.run({ $0.deltas(request) }) {
            case .batch(let batch): return .success(batch)
            case .problem(let problem): return .failure(problem)
            case .needsLog: return .failure(.storage)
            }
        } catch {
            return .failure(.stopping)
        }
    }

    private func decide(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Response {
        // Another answer may use the place while the writer decides.
        claim.giveBack()
        switch await queue.submit(request) {
        case .success(.made(let answer)): return .success(answer)
        case .failure(let problem): return .failure(problem)
        case .success(.unread(let unread)):
            do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
            do {
                return try await log.run { $0.answer(unread) }
            } catch {
                return .failure(.stopping)
            }
        }
    }

    private func read(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Response {
        guard request.request.check != nil else {
            do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
            return await read(request, with: log, claim)
        }
        // Comparisons have a room of their own, in which they wait for each other.
        claim.giveBack()
        let user = request.principal.identity
        let verdict = await comparisons.run(user: user, device: request.request.clientID ?? "") {
            await read(request, with: comparer, claim)
        }
        return verdict
            ?? .failure(.busy("Comparisons are under way for the device or its user; try again."))
    }

    private func read(
        _ request: AdmittedRequest, with reader: Confined<LogReader>, _ claim: AnswerClaim
    ) async -> Response {
        guard !health.isMoved else { return .failure(.storage) }
        do {
            switch try await reader.run({ $0.answer(to: request) }) {
            case .answer(let answer): return .success(answer)
            case .problem(let problem): return .failure(problem)
            case .needsNode, .needsLog: return await decide(request, claim)
            }
        } catch {
            return .failure(.stopping)
        }
    }
}

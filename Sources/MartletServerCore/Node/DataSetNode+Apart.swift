import MartletModel
import MartletProtocol

extension DataSetNode {
    /// The most sets of one request for which a search is made. To find each takes some
    /// transactions.
    private static let mostUnbearable = 8

    /// The refusal of a set that is put off because the database refuses something that comes with
    /// it.
    static let unbearable = Refusal(
        .busy,
        """
        the database refuses something that comes with the set; the server's log says what has to be \
        corrected there
        """, retryAfter: 60)

    /// Carries out a request if the database refuses something in it and does not say which set is
    /// at fault.
    ///
    /// Parts of the request go in transactions of their own. A part that is refused is halved
    /// again, down to the set at fault, which is put off. All other sets get their verdicts, and
    /// the device gets the entries that it missed.
    ///
    /// If very many sets are at fault, those behind them are put off, too.
    ///
    /// - Parameter refused: The database's message about the whole request.
    func decideApart(
        _ request: AdmittedRequest, refused: StorageFault, now: Int64
    ) -> [Result<NodeAnswer, Problem>] {
        let sets = request.request.changeSets
        var parts = [sets.startIndex..<sets.endIndex]
        var unbearable: Set<Int> = []
        var cause = refused
        // The whole request has been tried.
        var isTried = true
        while let part = parts.popLast() {
            if unbearable.count >= Self.mostUnbearable {
                unbearable.formUnion(part)
                continue
            }
            if !isTried {
                var body = request.request
                body.changeSets = Array(sets[part])
                let alone = AdmittedRequest(
                    principal: request.principal, request: body, source: request.source,
                    acceptsGzip: request.acceptsGzip)
                let results = decide([alone], now: now, leavingOut: [])
                guard let fault = takeFault() else {
                    // A problem of the request itself concerns all of its sets.
                    if case .failure = results[0] { return results }
                    continue
                }
                guard fault.kind == .refused else {
                    self.fault = fault
                    return results
                }
                cause = fault
            }
            isTried = false
            if part.count == 1 {
                unbearable.insert(part.lowerBound)
            } else {
                let middle = part.lowerBound + part.count / 2
                parts += [middle..<part.upperBound, part.lowerBound..<middle]
            }
        }
        let results = decide([request], now: now, leavingOut: unbearable)
        if fault == nil { fault = cause }
        return results
    }
}

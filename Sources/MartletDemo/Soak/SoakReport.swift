/// The result of a soak.
public struct SoakReport: Sendable {
    /// The figures of watched processes.
    public struct Usage: Sendable {
        public let name: String
        public let trends: [SoakFigure: Trend]
        /// The figures that must not grow.
        public let judged: Set<SoakFigure>
        /// The processor time that they used as a share of one processor, from 0 to the number of
        /// processors.
        public let processors: Double
    }

    public var seed: UInt64 = 0
    public var devices = 0
    /// The measured time, after the warm-up.
    public var length = Duration.zero
    /// The number of saves of all devices together in a second.
    public var pace = 0.0
    /// The times from a save's due time until the server had judged it, in tenths of the measured
    /// time.
    public var saves: [SoakPart] = []
    /// The times from the due time of an exchange with nothing to send until its end.
    public var syncs: [SoakPart] = []
    /// The same times over the whole of the soak: of devices that returned, with all that they had
    /// missed and saved, and of closing a file and opening it again.
    public var comeBacks = SoakPart([])
    public var reopenings = SoakPart([])
    /// The number of exchanges that failed and were tried again.
    public var failures = 0
    public var usages: [Usage] = []
    /// The outcome of every save.
    public var account = Account()

    public init() {}

    /// Whether no check has failed.
    public var isGood: Bool { checks.allSatisfy { $0.verdict != .failed } }
}

/// A check of a soak.
public struct SoakCheck: Hashable, Sendable {
    /// The result of a check.
    public enum Verdict: String, Hashable, Sendable {
        case passed
        case failed
        /// The soak was too short to judge it.
        case untold = "not judged"
    }

    public let name: String
    public let verdict: Verdict
    /// The figures by which it was judged.
    public let words: String
}

extension SoakReport {
    /// The maximum ratio of the last tenth's p99 to that of the first.
    static let mostGrowth = 1.2
    /// The number of times that a tenth needs for a 99th percentile.
    static let leastTimes = 200
    /// Returns the time for which a figure must be watched before it is judged. In less time,
    /// caches that fill look like a leak, and a connection that was just opened looks like one that
    /// is never closed.
    static func leastLength(_ figure: SoakFigure) -> Duration {
        figure == .memory ? .seconds(180) : .seconds(60)
    }

    /// The checks of a soak.
    public var checks: [SoakCheck] {
        var checks = usages.flatMap { usage in
            SoakFigure.allCases.filter { usage.judged.contains($0) }.compactMap { figure in
                usage.trends[figure].map {
                    Self.check(
                        usage.name, figure, $0, length, files: usage.trends[.files]?.rise ?? 0)
                }
            }
        }
        checks.append(latency)
        checks.append(
            SoakCheck(
                name: "nothing lost or doubled", verdict: account.isGood ? .passed : .failed,
                words: "lost \(account.lost), doubled \(account.doubled), replicas equal"
                    + " \(account.equalReplicas)/\(account.replicas)"))
        return checks
    }

    /// - Parameter files: The growth of the data files, in KiB. Memory may grow by twice as much,
    ///   because SQLite keeps pages up to its bound, in the connection that has written them and in
    ///   one that reads.
    static func check(
        _ name: String, _ figure: SoakFigure, _ trend: Trend, _ length: Duration,
        files: Double = 0
    ) -> SoakCheck {
        let allowance = figure.allowance(trend.start) + (figure == .memory ? 2 * max(0, files) : 0)
        let least = leastLength(figure)
        let isUntold = length < least
        return SoakCheck(
            name: "\(figure.rawValue) of \(name) flat",
            verdict: isUntold ? .untold : trend.rise <= allowance ? .passed : .failed,
            words: isUntold
                ? "less than \(least.components.seconds) s"
                : "rise \(figure.text(trend.rise)), allowed \(figure.text(allowance))")
    }

    private var latency: SoakCheck {
        let name = "p99 of the last tenth at most \(Self.mostGrowth) times that of the first"
        guard let first = saves.first, let last = saves.last,
            min(first.count, last.count) >= Self.leastTimes
        else {
            return SoakCheck(
                name: name, verdict: .untold,
                words: "less than \(Self.leastTimes) saves in a tenth")
        }
        let ratio = last.percentile99 / first.percentile99
        return SoakCheck(
            name: name, verdict: ratio <= Self.mostGrowth ? .passed : .failed,
            words: "\((ratio * 100).rounded() / 100) times")
    }
}

extension SoakFigure {
    /// Returns a value with its unit.
    public func text(_ value: Double) -> String {
        switch self {
        case .memory, .files: "\((value / 102.4).rounded() / 10) MiB"
        case .descriptors, .threads: "\((value * 10).rounded() / 10)"
        }
    }
}

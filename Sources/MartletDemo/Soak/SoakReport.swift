/// How a soak ended.
public struct SoakReport: Sendable {
    /// What processes used while they were watched.
    public struct Usage: Sendable {
        public let name: String
        public let trends: [SoakFigure: Trend]
        /// What must not grow.
        public let judged: Set<SoakFigure>
        /// The share of one processor they used, 0 to the number of processors.
        public let processors: Double
    }

    public var seed: UInt64 = 0
    public var devices = 0
    /// How long was measured, after the warm-up.
    public var length = Duration.zero
    /// Saves of all devices together, each second.
    public var pace = 0.0
    /// From a save's being due until the server had judged it, in tenths of the time.
    public var saves: [SoakPart] = []
    /// From an exchange's being due until it had ended, with nothing to send.
    public var syncs: [SoakPart] = []
    /// The same for the whole of the time: also of those who came back, with all they had missed and
    /// saved, and of closing a file and opening it again.
    public var comeBacks = SoakPart([])
    public var reopenings = SoakPart([])
    /// Exchanges that failed and were tried again.
    public var failures = 0
    public var usages: [Usage] = []
    /// What became of every save.
    public var account = Account()

    public init() {}

    /// Whether no check failed.
    public var isGood: Bool { checks.allSatisfy { $0.verdict != .failed } }
}

/// One thing that a soak must hold.
public struct SoakCheck: Hashable, Sendable {
    /// How a check ended.
    public enum Verdict: String, Hashable, Sendable {
        case passed
        case failed
        /// The soak was too short to tell.
        case untold = "not judged"
    }

    public let name: String
    public let verdict: Verdict
    /// The figures it was judged by.
    public let words: String
}

extension SoakReport {
    /// What p99 of the last tenth may be, over that of the first.
    static let mostGrowth = 1.2
    /// Fewer times in a tenth say nothing of one in a hundred.
    static let leastTimes = 200
    /// How long a figure must have been watched to be judged. In less time caches that fill look
    /// like memory that is lost, and a connection that is just opened like one that is kept.
    static func leastLength(_ figure: SoakFigure) -> Duration {
        figure == .memory ? .seconds(180) : .seconds(60)
    }

    /// What is asked of a soak.
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

    /// - Parameter files: By how much the data files grew, in KiB. Memory may grow by twice as much:
    ///   SQLite keeps pages up to its bound, in the connection that has written them and in one that
    ///   reads.
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
    /// A value with its unit.
    public func text(_ value: Double) -> String {
        switch self {
        case .memory, .files: "\((value / 102.4).rounded() / 10) MiB"
        case .descriptors, .threads: "\((value * 10).rounded() / 10)"
        }
    }
}

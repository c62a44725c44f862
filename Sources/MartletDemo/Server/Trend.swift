/// The trend of a figure while it was watched.
public struct Trend: Hashable, Sendable {
    /// The medians of the first tenth of the measurements and of the last.
    public let start: Double
    public let end: Double
    /// The change over the whole time, without peaks: the median slope of all pairs of measurements
    /// (Theil and Sen), times the time.
    public let growth: Double

    /// - Parameter points: The times in seconds and the values, in the order of time.
    /// - Returns: The trend; nil for less than two points.
    /// - Complexity: O(*n*² log *n*).
    init?(_ points: [(at: Double, value: Double)]) {
        guard let first = points.first, let last = points.last, last.at > first.at else {
            return nil
        }
        let tenth = max(1, points.count / 10)
        start = points.prefix(tenth).map(\.value).sorted().percentile(50)
        end = points.suffix(tenth).map(\.value).sorted().percentile(50)
        var slopes: [Double] = []
        slopes.reserveCapacity(points.count * (points.count - 1) / 2)
        for (index, point) in points.enumerated() {
            for later in points[(index + 1)...] where later.at > point.at {
                slopes.append((later.value - point.value) / (later.at - point.at))
            }
        }
        growth = slopes.sorted().percentile(50) * (last.at - first.at)
    }

    /// The larger of two rises: of a slow growth, and of a permanent step.
    public var rise: Double { max(growth, end - start) }
}

/// A figure of a process that a soak watches.
public enum SoakFigure: String, CaseIterable, Sendable {
    case memory
    case descriptors
    case threads
    /// The sizes of data files, which are reported if they are watched, and never judged.
    case files

    /// What must not grow.
    static let lasting: Set<SoakFigure> = [.memory, .descriptors, .threads]

    /// Returns the allowed rise over a run: a share of the start, and at least a fixed amount
    /// (memory in KiB).
    ///
    /// Caches and the allocator's free lists still fill a little after the warm-up, and the system
    /// may start or end a thread. A leak in each of a run's thousands of saves, or in each of its
    /// hundreds of connections and openings, is larger.
    func allowance(_ start: Double) -> Double {
        switch self {
        case .memory, .files: max(4_096, start * 0.05)
        case .descriptors: max(4, start * 0.02)
        case .threads: max(8, start * 0.05)
        }
    }

    func value(_ figures: ProcessFigures) -> Double {
        switch self {
        case .memory: Double(figures.memory)
        case .descriptors: Double(figures.descriptors)
        case .threads: Double(figures.threads)
        case .files: Double(figures.files)
        }
    }
}

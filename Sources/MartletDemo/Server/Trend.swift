/// How a figure went while it was watched.
public struct Trend: Hashable, Sendable {
    /// The median of the first tenth of the looks, and of the last.
    public let start: Double
    public let end: Double
    /// The change over the whole time, without peaks: the median slope of all pairs of measurements
    /// (Theil and Sen), times the time.
    public let growth: Double

    /// - Parameter points: In the order of time; seconds and values.
    /// - Returns: nil for less than two points.
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

    /// The more of the two ways to see it: a slow growth, and a step that stays.
    public var rise: Double { max(growth, end - start) }
}

/// What is watched of a process.
public enum SoakFigure: String, CaseIterable, Sendable {
    case memory
    case descriptors
    case threads
    /// The sizes of data files; told where they are watched, and judged by nothing.
    case files

    /// What must not grow.
    static let lasting: Set<SoakFigure> = [.memory, .descriptors, .threads]

    /// How much it may rise over a run: a share, and at least so much (memory in KiB).
    ///
    /// Caches and the allocator's free lists still fill a little after the warm-up; a thread more or
    /// less is the system's own affair. What is lost with each of a run's thousands of saves, or
    /// with each of its hundreds of connections and openings, comes to more.
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

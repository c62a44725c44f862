/// The faults of a simulation, and how often they occur, as a value that can be stored, sent and
/// compared.
///
/// The comment of each rate names its base. `FaultPlan()` has all faults at once, and `none` has no
/// faults. Begin with one of them and set the rates that you want.
public struct FaultPlan: Hashable, Sendable {
    /// The number of requests in a hundred that never arrive.
    public var lostRequests = 10
    /// The number of answers in a hundred that are lost after the server has done its work.
    public var lostAnswers = 20
    /// The number of requests in a hundred that arrive a second time, later.
    public var doubledRequests = 10
    /// The number of answers in a hundred that arrive a second time, later.
    public var doubledAnswers = 5
    /// The minimum time of a message, in milliseconds.
    public var shortestDelay = 0
    /// The maximum time of a message, in milliseconds. Different times make messages overtake each
    /// other.
    public var longestDelay = 2_000
    /// The bytes that a device's line carries in a second, in each direction; 0 for no limit.
    public var bytesPerSecond = 0
    /// The number of requests in a thousand before which the network demands a login for a while.
    /// It then answers every request with its own page.
    public var portals = 3
    /// The number of answers in a hundred that a proxy replaces by its own: any status, a page,
    /// half of the answer.
    public var strangeAnswers = 4
    /// The number of answers in a hundred that are replaced by another one: to another device, or
    /// to an earlier request.
    public var mixedAnswers = 3
    /// The number of events of a machine in a thousand after which it is switched off.
    public var crashes = 8
    /// The number of events of a machine in a thousand during which it crashes at some file
    /// operation.
    public var diskCrashes = 12
    /// The number of events of a machine in a thousand during which one file operation fails, or
    /// the disk is full for a while.
    public var diskErrors = 8
    /// The number of events of a machine in a thousand before which it loses its network for a
    /// while.
    public var partitions = 4
    /// The maximum error of a device's clock in either direction, in milliseconds.
    public var clockSkew = 40_000_000
    /// The number of events of a device in a thousand that make its clock jump.
    public var clockJumps = 3
    /// The number of events of a device in a thousand after which it drops its tables and refetches
    /// everything.
    public var newBeginnings = 4
    /// The number of batches of a stream in a thousand with which the stream is cut. This batch and
    /// those being sent are lost.
    public var streamCuts = 30
    /// The number of batches of a stream in a thousand that go astray: such a batch is lost alone,
    /// or arrives late or twice, with equal odds. No correct network does this.
    public var strayBatches = 30
    /// The number of events of a device in a thousand after which it is told to open or close its
    /// stream.
    public var streamChanges = 12
    /// The number of starting devices in a hundred that begin with a snapshot if they have no data.
    public var snapshots = 50
    /// The number of requests for a snapshot in a hundred, of people who see a part, that get one.
    public var viewSnapshots = 60
    /// The number of requests for a snapshot in a hundred that get an older one.
    public var oldSnapshots = 50
    /// The number of requested snapshots in a hundred that are lost or arrive damaged.
    public var spoiltSnapshots = 30
    /// The number of worlds in a hundred in which the server's snapshots have several parts.
    public var lazySeeding = 60
    /// The number of requested parts in a hundred before which the server makes another snapshot.
    public var newSnapshots = 40
    /// The number of the server's batches in a thousand after which it compacts its log.
    public var compactions = 100

    /// Creates the plan with all faults at once, with which Martlet itself is tested.
    public init() {}

    /// The plan without faults.
    public static var none: FaultPlan {
        var faults = FaultPlan()
        faults.lostRequests = 0
        faults.lostAnswers = 0
        faults.doubledRequests = 0
        faults.doubledAnswers = 0
        faults.longestDelay = 20
        faults.portals = 0
        faults.strangeAnswers = 0
        faults.mixedAnswers = 0
        faults.crashes = 0
        faults.diskCrashes = 0
        faults.diskErrors = 0
        faults.partitions = 0
        faults.clockSkew = 0
        faults.clockJumps = 0
        faults.newBeginnings = 0
        faults.streamCuts = 0
        faults.strayBatches = 0
        faults.streamChanges = 0
        faults.snapshots = 0
        faults.viewSnapshots = 0
        faults.spoiltSnapshots = 0
        faults.oldSnapshots = 0
        faults.lazySeeding = 0
        faults.newSnapshots = 0
        faults.compactions = 0
        return faults
    }

    /// The plan of a radio network in a gymnasium: messages are lost, doubled and late, devices are
    /// out of reach for a while, and streams are cut. Machines, disks and clocks work correctly.
    public static var poorWiFi: FaultPlan {
        let everything = FaultPlan()
        var faults = FaultPlan.none
        faults.lostRequests = everything.lostRequests
        faults.lostAnswers = everything.lostAnswers
        faults.doubledRequests = everything.doubledRequests
        faults.doubledAnswers = everything.doubledAnswers
        faults.longestDelay = everything.longestDelay
        faults.partitions = 10
        faults.streamCuts = 100
        faults.streamChanges = 50
        return faults
    }

    /// The plan of a clinic's line of 23 kbit/s: every byte takes time, and every answer takes a
    /// second or more.
    public static var clinic: FaultPlan {
        var faults = FaultPlan.none
        faults.bytesPerSecond = 2_900
        faults.shortestDelay = 300
        faults.longestDelay = 1_500
        faults.lostRequests = 3
        faults.lostAnswers = 5
        faults.streamChanges = 20
        faults.streamCuts = 50
        return faults
    }

    /// The plan of a hotel's network, which sometimes demands a login. Its proxy makes its own
    /// answers, repeats answers and mixes them up.
    public static var hotel: FaultPlan {
        var faults = FaultPlan.none
        faults.longestDelay = 400
        faults.portals = 30
        faults.strangeAnswers = 12
        faults.mixedAnswers = 8
        faults.doubledRequests = 5
        faults.streamChanges = 20
        faults.streamCuts = 100
        return faults
    }

    /// The plan of a train between tunnels: round trips take up to ten seconds, and then there is
    /// no network.
    public static var train: FaultPlan {
        var faults = FaultPlan.poorWiFi
        faults.shortestDelay = 50
        faults.longestDelay = 5_000
        faults.bytesPerSecond = 20_000
        faults.partitions = 40
        return faults
    }
}

// MARK: - As data

extension FaultPlan: Codable {
    /// All rates by their names, in the order in which shrinking a failure removes them.
    static let rates: [(name: String, path: any WritableKeyPath<FaultPlan, Int> & Sendable)] = [
        ("lostRequests", \.lostRequests), ("lostAnswers", \.lostAnswers),
        ("doubledRequests", \.doubledRequests), ("doubledAnswers", \.doubledAnswers),
        ("shortestDelay", \.shortestDelay), ("longestDelay", \.longestDelay),
        ("bytesPerSecond", \.bytesPerSecond), ("portals", \.portals),
        ("strangeAnswers", \.strangeAnswers), ("mixedAnswers", \.mixedAnswers),
        ("crashes", \.crashes),
        ("diskCrashes", \.diskCrashes), ("diskErrors", \.diskErrors),
        ("partitions", \.partitions), ("clockSkew", \.clockSkew), ("clockJumps", \.clockJumps),
        ("newBeginnings", \.newBeginnings), ("streamCuts", \.streamCuts),
        ("strayBatches", \.strayBatches), ("streamChanges", \.streamChanges),
        ("snapshots", \.snapshots), ("viewSnapshots", \.viewSnapshots),
        ("oldSnapshots", \.oldSnapshots),
        ("spoiltSnapshots", \.spoiltSnapshots), ("lazySeeding", \.lazySeeding),
        ("newSnapshots", \.newSnapshots), ("compactions", \.compactions),
    ]

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Reads the rates that are present. The others are those of `none`.
    /// - Throws: `DecodingError` for a name that no rate has.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Name.self)
        self = .none
        for name in values.allKeys {
            guard let rate = Self.rates.first(where: { $0.name == name.stringValue }) else {
                throw DecodingError.dataCorruptedError(
                    forKey: name, in: values,
                    debugDescription: "There is no rate “\(name.stringValue)”; there are"
                        + " \(Self.rates.map(\.name).joined(separator: ", ")).")
            }
            self[keyPath: rate.path] = try values.decode(Int.self, forKey: name)
        }
    }

    /// Writes the rates that differ from those of `none`.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Name.self)
        for (name, path) in Self.rates where self[keyPath: path] != FaultPlan.none[keyPath: path] {
            try values.encode(self[keyPath: path], forKey: Name(stringValue: name))
        }
    }
}

/// What goes wrong in a simulation, and how often: data that can be stored, sent and compared.
///
/// Each rate says of how many. `FaultPlan()` is everything at once, `none` a world without faults;
/// take one of them and set what you want.
public struct FaultPlan: Hashable, Sendable {
    /// Of a hundred requests, how many never arrive.
    public var lostRequests = 10
    /// Of a hundred answers, how many are lost after the server did its work.
    public var lostAnswers = 20
    /// Of a hundred requests, how many arrive a second time, later.
    public var doubledRequests = 10
    /// Of a hundred answers, how many arrive a second time, later.
    public var doubledAnswers = 5
    /// Milliseconds a message takes at least.
    public var shortestDelay = 0
    /// Milliseconds a message takes at most; different times make messages overtake each other.
    public var longestDelay = 2_000
    /// Bytes that a device's line carries in a second, each way; 0: as many as there are.
    public var bytesPerSecond = 0
    /// Of a thousand requests, before how many the network wants a login for a while: it answers
    /// each with a page of its own.
    public var portals = 3
    /// Of a hundred answers, how many are taken by something on the way, which gives one of its own:
    /// any status, a page, half of the answer.
    public var strangeAnswers = 4
    /// Of a hundred answers, how many are another one: to another device, or to an earlier request.
    public var mixedAnswers = 3
    /// Of a thousand events of a machine, after how many it is switched off.
    public var crashes = 8
    /// Of a thousand events of a machine, in how many its disk dies at some file operation.
    public var diskCrashes = 12
    /// Of a thousand events of a machine, in how many one file operation fails, or the disk is
    /// full for a while.
    public var diskErrors = 8
    /// Of a thousand events of a machine, before how many it loses its network for a while.
    public var partitions = 4
    /// Milliseconds a device's clock may be off, either way.
    public var clockSkew = 40_000_000
    /// Of a thousand events of a device, how many make its clock jump.
    public var clockJumps = 3
    /// Of a thousand events of a device, after how many it throws its tables away and fetches
    /// everything anew.
    public var newBeginnings = 4
    /// Of a thousand batches of a stream, after how many the stream is cut, this and what is under
    /// way lost.
    public var streamCuts = 30
    /// Of a thousand batches of a stream, how many are lost alone, and how many come twice or late,
    /// which no sound network does.
    public var strayBatches = 30
    /// Of a thousand events of a device, after how many it is told to open or close its stream.
    public var streamChanges = 12
    /// Of a hundred devices that start, how many begin with a snapshot where they have no data.
    public var snapshots = 50
    /// The share of requests for a snapshot that get an older one, in hundredths.
    public var oldSnapshots = 50
    /// Of a hundred snapshots asked for, how many are lost or come damaged.
    public var spoiltSnapshots = 30
    /// Of a hundred worlds, in how many the server's snapshots have several parts.
    public var lazySeeding = 60
    /// Of a hundred parts asked for, before how many the server makes another snapshot.
    public var newSnapshots = 40
    /// Of a thousand batches the server works on, after how many it compacts its log.
    public var compactions = 100

    /// Everything at once, as Martlet itself is tried.
    public init() {}

    /// A world without faults.
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
        faults.spoiltSnapshots = 0
        faults.oldSnapshots = 0
        faults.lazySeeding = 0
        faults.newSnapshots = 0
        faults.compactions = 0
        return faults
    }

    /// A radio network in a gymnasium: messages are lost, doubled and late, devices are out of
    /// reach for a while, streams are cut. Machines, disks and clocks are sound.
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

    /// A clinic's line of 23 kbit/s: every byte takes its time, and every answer a second and more.
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

    /// A hotel's network, which wants a login now and then, and whose proxy answers by itself, repeats
    /// and mixes answers up.
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

    /// A train between tunnels: round trips of up to ten seconds, then none at all.
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
    /// All rates by their names, in the order in which they are given up while a failure is shrunk.
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
        ("snapshots", \.snapshots), ("oldSnapshots", \.oldSnapshots),
        ("spoiltSnapshots", \.spoiltSnapshots), ("lazySeeding", \.lazySeeding),
        ("newSnapshots", \.newSnapshots), ("compactions", \.compactions),
    ]

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    /// Reads the rates that are named; all others are those of `none`.
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

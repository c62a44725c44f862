/// What goes wrong in a simulation, and how often.
public struct Faults: Sendable {
    /// Of a hundred requests, how many never arrive.
    public var lostRequests = 10
    /// Of a hundred answers, how many are lost after the server did its work.
    public var lostAnswers = 20
    /// Of a hundred requests, how many arrive a second time, later.
    public var doubledRequests = 10
    /// Of a hundred answers, how many arrive a second time, later.
    public var doubledAnswers = 5
    /// Milliseconds a message takes at most; different times make messages overtake each other.
    public var longestDelay = 2_000
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
    public var clockSkew: Int64 = 40_000_000
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
    /// Of a hundred snapshots asked for, how many are older ones.
    public var oldSnapshots = 50
    /// Of a hundred snapshots asked for, how many are lost or come damaged.
    public var spoiltSnapshots = 30
    /// Of a hundred worlds, in how many the server's snapshots have several parts.
    public var lazySeeding = 60
    /// Of a hundred parts asked for, before how many the server makes another snapshot.
    public var newSnapshots = 40
    /// Of a thousand batches the server works on, after how many it compacts its log.
    public var compactions = 100

    public init() {}

    /// A world without faults.
    public static var none: Faults {
        var faults = Faults()
        faults.lostRequests = 0
        faults.lostAnswers = 0
        faults.doubledRequests = 0
        faults.doubledAnswers = 0
        faults.longestDelay = 20
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
        faults.spoiltSnapshots = 0
        faults.oldSnapshots = 0
        faults.newSnapshots = 0
        faults.compactions = 0
        return faults
    }
}

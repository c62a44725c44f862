public import MartletDevice
public import MartletModel
internal import MartletProtocol

/// An event that concerns the data on this device.
public enum ClientEvent: Sendable {
    /// The client committed a local save.
    case saved
    /// The contents of tables may have changed: remote changes arrived, or the device rebased its
    /// own edits.
    case changed(types: Set<String>, remoteRecords: Int)
    /// The end of one of the device's change sets: accepted, or refused.
    case receipt(Receipt)
    /// Values arrived that no column or table can hold yet; see `MartletClient.keptAside()`.
    case keptAside(KeptAside)
    /// Changes arrived that the device had already applied; the number of them.
    case passedOver(Int)
    /// The device's tables refused this number of remote records; see
    /// `MartletClient.quarantined()`.
    case quarantined(Int)
    /// Other programs wrote values that no change set can carry; the number of records. See
    /// `MartletClient.withheld()`.
    case withheld(Int)
    /// The device has all records of a class of the first download; see
    /// `MartletClient.seedingStatus()`.
    case seeded(class: String)
    /// The server's history differs from the device's, because the server was restored from a
    /// backup. The device has taken over the server's state, and kept all its own work.
    case rejoined(Rejoined)
    /// This number of temporary ids became permanent.
    case idsAssigned(Int)
    /// The device has reached a revision, by a successful exchange or over the live connection.
    case reached(Revision)
    /// An exchange failed. The client tries again after this number of milliseconds. If it is nil, a
    /// person has to act; the client asks again only after 15 minutes, or soon after a save.
    case failed(SyncError, retryIn: Int64?)
}

/// The state of a device.
public struct ClientStatus: Sendable {
    /// The device's name, which never changes.
    public var clientID: String
    /// The data set's identity; nil before the first exchange.
    public var dataSet: String?
    /// The newest revision that the device has applied.
    public var revision: Revision
    /// The number of change sets that the server has not confirmed yet.
    public var outbox: Int
    /// The number of records that other programs wrote in tables which the file no longer has. The
    /// device queues them once the file has the tables again.
    public var awaitingTable: Int
    /// The number of refused change sets that wait for a decision.
    public var parked: Int
    /// The number of records with values that no column or table can hold yet; see
    /// `MartletClient.keptAside()`.
    public var keptAside: Int
    /// The number of remote records that the tables refuse; see `MartletClient.quarantined()`.
    public var quarantined: Int
    /// The number of records to which other programs gave values that cannot be sent; see
    /// `MartletClient.withheld()`.
    public var withheld: Int
    /// Why the device cannot remove all that it has of records which its user may not see any more, such as
    /// a damaged full-text index, a table that another program has renamed or dropped, or a program that
    /// reads the file all the time, and what to do; nil if nothing prevents it. The device does not confirm
    /// their removal to the server until then.
    public var unremovedReason: String?
    /// Why the tables refuse other devices' changes, such as a full-text index with wrong triggers, and what to
    /// do; nil if they took the last ones.
    public var unappliedReason: String?
    /// The number of remote changes that arrived again and were skipped, since the file was
    /// created.
    public var passedOver: Int64
    /// The time of the last successful exchange, in milliseconds since 1970; nil before the first.
    public var lastExchange: Int64?
    /// The way in which the client receives changes from the server.
    public var connection: ClientConnection
    /// The client's use of the network since it was opened.
    public var traffic: ClientTraffic
}

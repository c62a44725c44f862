public import MartletDevice
public import MartletModel
internal import MartletProtocol

/// What happened to the data on this device.
public enum ClientEvent: Sendable {
    /// A local save was committed.
    case saved
    /// Tables may show something else now: others changed them, or own edits were moved.
    case changed(types: Set<String>, remoteRecords: Int)
    /// The fate of an own change set.
    case receipt(Receipt)
    /// Values arrived for which the tables have no place; see `MartletClient.keptAside()`.
    case keptAside(KeptAside)
    /// Changes arrived that the device had applied already; the number of them.
    case passedOver(Int)
    /// The device's tables refused so many remote records; see `MartletClient.quarantined()`.
    case quarantined(Int)
    /// Other programs wrote values that no set can carry; the number of records. See
    /// `MartletClient.withheld()`.
    case withheld(Int)
    /// All records of a class of the first download are here; see `MartletClient.seedingStatus()`.
    case seeded(class: String)
    /// The server's history was another one than the device's: it was restored from a backup. The
    /// device has taken the server's state over, and kept all own work.
    case rejoined(Rejoined)
    /// So many temporary ids became permanent.
    case idsAssigned(Int)
    /// An exchange has ended well at a revision, or the live connection has brought it.
    case reached(Revision)
    /// An exchange failed; the next try comes by itself in so many milliseconds, or never.
    case failed(SyncError, retryIn: Int64?)
}

/// How a device stands.
public struct ClientStatus: Sendable {
    /// The device's name, for its life.
    public var clientID: String
    /// The data set's identity; nil before the first exchange.
    public var dataSet: String?
    /// The newest revision applied.
    public var revision: Revision
    /// Change sets not yet confirmed.
    public var outbox: Int
    /// The number of records that other programs wrote in tables which the file no longer has. They are queued once
    /// the file has the tables again.
    public var awaitingTable: Int
    /// Refused change sets waiting for a decision.
    public var parked: Int
    /// The number of records with values for which the tables have no place; see
    /// `MartletClient.keptAside()`.
    public var keptAside: Int
    /// The number of records that the tables refuse; see `MartletClient.quarantined()`.
    public var quarantined: Int
    /// The number of records that other programs gave values that cannot be sent; see
    /// `MartletClient.withheld()`.
    public var withheld: Int
    /// The number of others' changes that arrived again and were passed over, since the file was
    /// made.
    public var passedOver: Int64
    /// Milliseconds since 1970 of the last exchange that ended well; nil before the first.
    public var lastExchange: Int64?
    /// Whether others' changes come by themselves, and how.
    public var connection: ClientConnection
    /// How often the network was used since the client was opened.
    public var traffic: ClientTraffic
}

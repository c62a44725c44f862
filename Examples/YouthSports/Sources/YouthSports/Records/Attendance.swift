import MartletStore

/// Whether a player was at an event.
public struct Attendance: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var event: RecordID
    public var player: RecordID
    public var wasThere: Bool

    public init(id: RecordID? = nil, event: RecordID, player: RecordID, wasThere: Bool) {
        self.id = id
        self.event = event
        self.player = player
        self.wasThere = wasThere
    }

    private enum CodingKeys: String, CodingKey {
        case id
        case event = "event_id"
        case player = "player_id"
        case wasThere = "was_there"
    }
}

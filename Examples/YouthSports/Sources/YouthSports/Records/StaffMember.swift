import MartletStore

/// Somebody who works for the organisation.
public struct StaffMember: Codable, Hashable, Sendable, ReadableRecord {
    public var id: RecordID?
    public var name: String
    public var phone: String?

    public init(id: RecordID? = nil, name: String, phone: String? = nil) {
        self.id = id
        self.name = name
        self.phone = phone
    }
}

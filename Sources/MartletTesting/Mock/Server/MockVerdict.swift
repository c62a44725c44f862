internal import MartletModel
internal import MartletProtocol

/// Whether everything a script expects has happened.
public struct MockVerdict: Hashable, Sendable {
    /// What did not happen, or not as expected; a sentence each.
    public let complaints: [String]

    /// Whether there is nothing to complain about.
    public var isGood: Bool { complaints.isEmpty }

    /// As JSON: `{"ok":false,"complaints":["…"]}`.
    public var json: [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("ok", isGood)
        json.name("complaints")
        json.beginArray()
        for complaint in complaints { json.text(complaint) }
        json.endArray()
        json.endObject()
        return json.bytes
    }
}

internal import MartletModel
internal import MartletProtocol

/// The verdict on a script's expectations.
public struct MockVerdict: Hashable, Sendable {
    /// The expectations that were not met, a sentence each.
    public let complaints: [String]

    /// Whether all expectations were met.
    public var isGood: Bool { complaints.isEmpty }

    /// The verdict as JSON: `{"ok":false,"complaints":["…"]}`.
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

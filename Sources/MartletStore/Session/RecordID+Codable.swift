public import MartletModel

/// An id is encoded as a number or a text, so that records with ids are `Codable` without code.
extension RecordID: Codable {
    /// Decodes an id.
    /// - Throws: `DecodingError` if the value is neither an integer nor a text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int64.self) {
            self = .integer(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .integer(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        }
    }
}

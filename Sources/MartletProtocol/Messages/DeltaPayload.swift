internal import MartletModel

/// What a delta says of a record: the text of a JSON object, and what it says where that was read
/// together with the delta.
struct DeltaPayload: Sendable {
    enum Form: Sendable {
        case text(String)
        /// What was read, and where the text stands in the input.
        case read(Attributes, input: [UInt8], token: TextToken)
    }

    let form: Form

    /// A text that nobody has looked into.
    init(_ text: String) {
        form = .text(text)
    }

    /// A text in the input that has been read.
    /// - Parameter token: Its place, without the quotes.
    init(_ attributes: Attributes, at token: TextToken, in input: [UInt8]) {
        form = .read(attributes, input: input, token: token)
    }

    /// The text, byte for byte as it was sent.
    var text: String {
        switch form {
        case .text(let text): text
        case .read(_, let input, let token): JSONReader(input).text(of: token)
        }
    }
}

extension DeltaPayload: Hashable {
    static func == (left: DeltaPayload, right: DeltaPayload) -> Bool { left.text == right.text }

    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

internal import MartletModel

/// The payload of a delta: the text of a JSON object, and its attributes if they were read together
/// with the delta.
struct DeltaPayload: Sendable {
    enum Form: Sendable {
        case text(String)
        /// The attributes, and the position of the text in the input.
        case read(Attributes, input: [UInt8], token: TextToken)
    }

    let form: Form

    /// Creates a payload from a text that was not read.
    init(_ text: String) {
        form = .text(text)
    }

    /// Creates a payload from a text in the input that was read.
    /// - Parameter token: The position of the text, without the quotes.
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

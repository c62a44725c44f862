internal import MartletModel

extension DeltaPayload {
    /// Returns the attributes of the text.
    /// - Throws: `WireFault` if it is no object of plain values.
    func attributes() throws(WireFault) -> Attributes {
        switch form {
        case .text(let text): try SyncCoder.decodeAttributes(Array(text.utf8))
        case .read(let attributes, _, _): attributes
        }
    }
}

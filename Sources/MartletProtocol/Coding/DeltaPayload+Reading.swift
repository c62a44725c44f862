internal import MartletModel

extension DeltaPayload {
    /// What the text says.
    /// - Throws: `WireFault` where it is no object of plain values.
    func attributes() throws(WireFault) -> Attributes {
        switch form {
        case .text(let text): try SyncCoder.decodeAttributes(Array(text.utf8))
        case .read(let attributes, _, _): attributes
        }
    }
}

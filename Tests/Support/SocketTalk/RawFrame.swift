/// A frame made byte by byte, so that it can be as wrong as a test likes (RFC 6455 §5.2).
package struct RawFrame: Sendable {
    package var isFinal: Bool
    /// The three reserved bits, 0...7.
    package var reserved: UInt8
    package var opcode: UInt8
    package var payload: [UInt8]
    /// Nil leaves the frame unmasked.
    package var mask: [UInt8]?
    /// The length the head claims, where it is not the payload's.
    package var claimed: UInt64?

    package init(
        isFinal: Bool = true, reserved: UInt8 = 0, opcode: UInt8, payload: [UInt8] = [],
        mask: [UInt8]? = [0x12, 0x34, 0x56, 0x78], claimed: UInt64? = nil
    ) {
        self.isFinal = isFinal
        self.reserved = reserved
        self.opcode = opcode
        self.payload = payload
        self.mask = mask
        self.claimed = claimed
    }

    package static func text(_ text: String, isFinal: Bool = true) -> RawFrame {
        RawFrame(isFinal: isFinal, opcode: 1, payload: Array(text.utf8))
    }

    package static func rest(_ text: String, isFinal: Bool = true) -> RawFrame {
        RawFrame(isFinal: isFinal, opcode: 0, payload: Array(text.utf8))
    }

    package static func ping(_ payload: String = "") -> RawFrame {
        RawFrame(opcode: 9, payload: Array(payload.utf8))
    }

    package static func close(_ code: UInt16?, _ reason: String = "") -> RawFrame {
        let head = code.map { [UInt8($0 >> 8), UInt8($0 & 255)] } ?? []
        return RawFrame(opcode: 8, payload: head + Array(reason.utf8))
    }

    package var bytes: [UInt8] {
        let length = claimed ?? UInt64(payload.count)
        let flag: UInt8 = mask == nil ? 0 : 0x80
        var bytes = [(isFinal ? 0x80 : 0) | reserved << 4 | opcode]
        if length < 126 {
            bytes.append(flag | UInt8(length))
        } else if length < 65_536 {
            bytes += [flag | 126, UInt8(length >> 8), UInt8(length & 255)]
        } else {
            bytes.append(flag | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(shift)))
            }
        }
        guard let mask else { return bytes + payload }
        bytes += mask
        for (index, byte) in payload.enumerated() { bytes.append(byte ^ mask[index % 4]) }
        return bytes
    }
}

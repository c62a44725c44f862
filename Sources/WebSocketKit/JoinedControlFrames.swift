/// Passes bytes on, each control frame in one piece.
///
/// wslay checks the reason of a closing frame piece by piece. It skips two bytes of each piece for
/// the code, although only the first piece begins with one. If the network had split a letter of
/// several bytes, wslay therefore took it for invalid UTF-8 (found by fuzzing). To find control
/// frames, this type reads the heads of all frames (RFC 6455 §5.2); wslay checks them.
struct JoinedControlFrames {
    /// The bytes of an incomplete head or control frame.
    private var gathered: [UInt8] = []
    /// The number of missing bytes of the current frame, which need not be held back.
    private var passing: UInt64 = 0

    /// Moves bytes to the output.
    /// - Parameters:
    ///   - input: The bytes that have arrived. Moved or kept bytes are removed from its start.
    ///   - room: The output, of at least 131 bytes, the length of the longest control frame.
    /// - Returns: The number of bytes moved; 0 if more bytes must arrive first.
    mutating func move(
        _ input: inout UnsafeRawBufferPointer, to room: UnsafeMutableRawBufferPointer
    ) -> Int {
        if passing == 0 {
            while gathered.count < needed {
                guard let byte = input.first else { return 0 }
                gathered.append(byte)
                input = UnsafeRawBufferPointer(rebasing: input.dropFirst())
            }
            defer { gathered.removeAll(keepingCapacity: false) }
            passing = isControl ? 0 : payload
            room.copyBytes(from: gathered)
            return gathered.count
        }
        let part = min(room.count, input.count, Int(clamping: passing))
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<part]))
        input = UnsafeRawBufferPointer(rebasing: input[part...])
        passing -= UInt64(part)
        return part
    }

    /// The number of bytes that must be gathered, as far as it is known.
    private var needed: Int {
        guard gathered.count >= 2, gathered.count >= headLength else {
            return gathered.count < 2 ? 2 : headLength
        }
        return headLength + (isControl ? Int(payload) : 0)
    }

    /// Whether a control frame of a valid length has begun. wslay refuses a longer one by its head.
    private var isControl: Bool { gathered[0] & 0x0F >= 8 && gathered[1] & 0x7F < 126 }

    private var lengthBytes: Int {
        switch gathered[1] & 0x7F {
        case 126: 2
        case 127: 8
        default: 0
        }
    }

    private var headLength: Int { 2 + lengthBytes + (gathered[1] & 0x80 == 0 ? 0 : 4) }

    private var payload: UInt64 {
        guard lengthBytes > 0 else { return UInt64(gathered[1] & 0x7F) }
        return gathered[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | UInt64($1) }
    }
}

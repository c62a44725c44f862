/// Hands bytes on so that a control frame always comes in one piece.
///
/// wslay judges the reason of a closing frame piece by piece, and passes over two bytes of each for the
/// code that only the first one begins with: a letter of several bytes that the network had cut was taken
/// for broken UTF-8 (found by fuzzing). It needs the heads of all frames for that (RFC 6455 §5.2); whether
/// they are right is left to wslay.
struct JoinedControlFrames {
    /// What has come of a head, or of a control frame, and is not whole.
    private var gathered: [UInt8] = []
    /// Bytes of the frame under way that are yet to come; they need not be held back.
    private var passing: UInt64 = 0

    /// Moves bytes on.
    /// - Parameters:
    ///   - input: What has come; what is moved or kept is taken from its beginning.
    ///   - room: Where it goes; at least 131 bytes, the longest control frame's.
    /// - Returns: How many bytes were moved; 0 where more have to come first.
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

    /// How many bytes have to be gathered, as far as can be told.
    private var needed: Int {
        guard gathered.count >= 2, gathered.count >= headLength else {
            return gathered.count < 2 ? 2 : headLength
        }
        return headLength + (isControl ? Int(payload) : 0)
    }

    /// Whether a control frame has begun that may be one: a longer one is refused by its head.
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

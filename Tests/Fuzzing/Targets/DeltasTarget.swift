import MartletModel
import MartletProtocol

/// Batches of the stream of deltas, as a device reads them.
enum DeltasTarget: FuzzTarget {
    static let name = "deltas"

    static func check(_ input: [UInt8]) throws {
        guard let batch = try? SyncCoder.decodeDeltaBatch(input) else { return }
        let again = try SyncCoder.decodeDeltaBatch(SyncCoder.encode(batch))
        try hold(again == batch, "a batch is the same when written and read again")
        var last = batch.from ?? 0
        for delta in batch.deltas {
            try hold(
                delta.version >= last && delta.version <= batch.nextVersion,
                "versions rise within their batch")
            last = delta.version
            if let payload = delta.payload {
                let read = try? SyncCoder.decodeAttributes([UInt8](payload.utf8))
                try hold(
                    (try? delta.attributes()) == read,
                    "a payload says the same where it stands and as a document")
            }
        }
    }
}

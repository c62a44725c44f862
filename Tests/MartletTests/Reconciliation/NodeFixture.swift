import MartletModel
import MartletProtocol
import SmallWorlds

@testable import Martlet
@testable import MartletDevice

/// A device's machine on a real file, spoken to by hand.
final class NodeFixture {
    let device: DeviceFixture
    let node: DeviceNode
    /// Milliseconds since 1970.
    var now: Int64 = 5_000

    init(
        _ device: DeviceFixture, _ change: (inout DeviceNode.Options) -> Void = { _ in }
    ) {
        self.device = device
        var options = DeviceNode.Options()
        options.isLive = true
        change(&options)
        node = DeviceNode(store: device.store, options: options)
    }

    func handle(_ event: DeviceNode.Event) -> Told {
        Told(node.handle(event, now: now))
    }

    /// Answers an exchange.
    func answer(
        _ exchange: Int, _ revision: Revision, more: Bool = false, _ sets: [ChangeSet] = []
    ) throws -> Told {
        var answer = SyncAnswer(maxRevision: revision, more: more, changeSets: sets)
        answer.dataSet = "d"
        answer.lineage = "l\(revision)"
        return handle(
            .answered(
                exchange: exchange, status: 200, body: try SyncCoder.encode(answer),
                retryAfter: nil))
    }

    /// Brings the device up to date with a server at its revision, and opens the stream.
    /// - Returns: The stream's number.
    func goLive() throws -> Int {
        guard let sent = try handle(.wake(isUrgent: true)).sent else { throw FixtureError.changed }
        let told = try answer(sent.exchange, device.store.revision)
        guard let stream = told.opened?.number else { throw FixtureError.changed }
        _ = handle(.streamOpened(stream))
        return stream
    }

    /// What the machine wants done, by kind.
    struct Told {
        let actions: [DeviceNode.Action]

        init(_ actions: [DeviceNode.Action]) {
            self.actions = actions
        }

        var isEmpty: Bool { actions.isEmpty }

        var sent: (exchange: Int, request: SyncRequest)? {
            get throws {
                for case .send(let exchange, let body) in actions {
                    return (exchange, try SyncCoder.decodeRequest(body))
                }
                return nil
            }
        }

        var opened: (number: Int, cursor: DeltaCursor)? {
            for case .openStream(let number, let cursor) in actions { return (number, cursor) }
            return nil
        }

        var closed: Int? {
            for case .closeStream(let number) in actions { return number }
            return nil
        }

        var fetched: Int? {
            for case .fetchSnapshot(let number) in actions { return number }
            return nil
        }

        var timer: (number: Int, milliseconds: Int64)? {
            for case .setTimer(let number, let wait) in actions { return (number, wait) }
            return nil
        }

        var streamTimer: (number: Int, milliseconds: Int64)? {
            for case .setStreamTimer(let number, let wait) in actions { return (number, wait) }
            return nil
        }

        var error: SyncError? {
            for case .notify(.failed(let error, _)) in actions { return error }
            return nil
        }

        /// The revision a batch led to.
        var streamed: Revision? {
            for case .notify(.streamed(_, let revision)) in actions { return revision }
            return nil
        }

        var isLive: Bool? {
            for case .notify(.live(let isLive)) in actions { return isLive }
            return nil
        }
    }
}

import MartletStore
import Synchronization

/// The notices a draft has had.
final class NoticeBook: Sendable {
    private let held = Mutex<[DraftNotice]>([])

    var notices: [DraftNotice] { held.withLock { $0 } }

    func add(_ notice: DraftNotice) {
        held.withLock { $0.append(notice) }
    }
}

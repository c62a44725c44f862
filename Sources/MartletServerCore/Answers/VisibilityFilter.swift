import MartletModel
import MartletProtocol

/// What of a data set a principal may see. Every answer passes it: entries, blocks of entries,
/// and the truth that goes with a refusal.
///
/// This form shows everybody everything; scopes will be decided here and nowhere else.
public struct VisibilityFilter: Sendable {
    /// Everybody sees everything.
    public static let everything = VisibilityFilter()

    /// An entry as the principal may see it, encoded.
    func entry(_ body: [UInt8], for principal: Principal) -> [UInt8] { body }

    /// Whether entries made for all may go to the principal as they are.
    func showsEverything(to principal: Principal) -> Bool { true }

    /// Whether a block made for all may go to the principal as it is.
    func passesWhole(_ block: LogCache.Block, for principal: Principal) -> Bool { true }

    /// Rows of a difference as the principal may see them.
    func rows(_ part: DifferencePart, for principal: Principal) -> DifferencePart { part }

    /// The truth beside a refusal, as the principal may see it.
    func truth(_ types: [TypeChanges], for principal: Principal) -> [TypeChanges] { types }
}

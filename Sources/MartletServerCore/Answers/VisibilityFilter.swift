import MartletModel
import MartletProtocol

/// Limits the records of a data set to those that a principal may see. It applies to every answer:
/// entries, blocks of entries, and the current rows that accompany a refusal.
///
/// This version shows everything to every principal. Future limits belong here and nowhere else.
package struct VisibilityFilter: Sendable {
    /// The filter that shows everything to every principal.
    package static let everything = VisibilityFilter()

    /// Returns an entry as the principal may see it, encoded.
    func entry(_ body: [UInt8], for principal: Principal) -> [UInt8] { body }

    /// Returns whether the principal may get entries that were made for all.
    func showsEverything(to principal: Principal) -> Bool { true }

    /// Returns whether the principal may get a block that was made for all.
    func passesWhole(_ block: LogCache.Block, for principal: Principal) -> Bool { true }

    /// Returns the rows of a difference that the principal may see.
    func rows(_ part: DifferencePart, for principal: Principal) -> DifferencePart { part }

    /// Returns the truth of a refusal as the principal may see it.
    func truth(_ types: [TypeChanges], for principal: Principal) -> [TypeChanges] { types }
}
